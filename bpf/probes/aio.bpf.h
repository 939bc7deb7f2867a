/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests to io_submit that ask for durability: a worker carries them out, or does so after the last byte of a direct write. The
 * requests are remembered when they are submitted, to name whoever asked.
 */
#ifndef MOSTRACE_AIO_BPF_H
#define MOSTRACE_AIO_BPF_H

#include "current.bpf.h"
#include "syscall.bpf.h"

/* The most requests of one io_submit that are looked at. */
#define AIO_MAX 1024

/* <uapi/linux/aio_abi.h> */
enum {
	IOCB_CMD_PWRITE = 1,
	IOCB_CMD_FSYNC = 2,
	IOCB_CMD_FDSYNC = 3,
	IOCB_CMD_PWRITEV = 8,
};

struct user_iocb {
	__u64 data;
	__u32 key;
	__u32 rw_flags;
	__u16 opcode;
	__s16 reqprio;
	__u32 fildes;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* fs/aio.c */
struct kioctx {
	unsigned long user_id;
};

struct kioctx_table {
	unsigned int nr;
	struct kioctx *table[1];
};

struct io_event {
	__u64 obj;
};

struct aio_kiocb {
	struct kioctx *ki_ctx;
	struct io_event ki_res;
};

struct fsync_iocb {
	struct file *file;
	struct work_struct work;
};

#pragma clang attribute pop

/* A request: its context in the kernel, and the address of its iocb in the program. */
struct aio_request {
	__u64 context;
	__u64 iocb;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 12);
	__type(key, struct aio_request);
	__type(value, struct call);
} aio_calls SEC(".maps");

/* One io_submit. */
struct submission {
	__u64 context;
	__u64 *list;
	__u64 count;
};

/* Remembers the request whose address is at `at`, if it is of interest. Returns 1 if it cannot be read. */
static __always_inline long remember_iocb(__u64 context, __u64 at)
{
	struct user_iocb iocb;
	struct aio_request request = { .context = context };
	struct call call = { .entry.offset = MOSTRACE_NONE };
	struct file *file;

	if (bpf_probe_read_user(&request.iocb, sizeof(request.iocb), (void *)at) ||
	    bpf_probe_read_user(&iocb, sizeof(iocb), (void *)request.iocb))
		return 1;
	switch (iocb.opcode) {
	case IOCB_CMD_PWRITE:
	case IOCB_CMD_PWRITEV:
		call.entry.kind = MOSTRACE_CALL_WRITE;
		break;
	case IOCB_CMD_FSYNC:
		call.entry.kind = MOSTRACE_CALL_FSYNC;
		break;
	case IOCB_CMD_FDSYNC:
		call.entry.kind = MOSTRACE_CALL_FDATASYNC;
		break;
	default:
		return 0;
	}
	file = open_file(iocb.fildes);
	if (!file || !is_traced_filesystem(BPF_CORE_READ(file, f_inode, i_sb, s_dev)))
		return 0;
	call.entry.start_ns = bpf_ktime_get_ns();
	tell_task(&call.entry);
	if (bpf_map_update_elem(&aio_calls, &request, &call, BPF_ANY))
		lose_cause(LOSS_CAUSES_TASKS);
	return 0;
}

#ifdef MOSTRACE_LOOPLESS
/* Each step is a function of its own, which the verifier walks once. */
__noinline int submit_iocb(__u64 context, __u64 at)
{
	return remember_iocb(context, at);
}

static __always_inline void submit_all(struct submission *of)
{
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < AIO_MAX && i < of->count; i++)
		if (submit_iocb(of->context, (__u64)(of->list + i)))
			break;
}
#else
static long submit_iocb(__u32 nth, struct submission *of)
{
	return nth >= of->count || remember_iocb(of->context, (__u64)(of->list + nth));
}

static __always_inline void submit_all(struct submission *of)
{
	bpf_loop(AIO_MAX, submit_iocb, of, 0);
}
#endif

/* The most contexts of a process among which that of an io_submit is looked for. */
#define AIO_CONTEXTS 64

/* Returns the process's context of which the program has this number, or 0. */
static __always_inline __u64 aio_context(struct task_struct *task, unsigned long number)
{
	struct kioctx_table *table = BPF_CORE_READ(task, mm, ioctx_table);
	__u32 size = table ? BPF_CORE_READ(table, nr) : 0;
	struct kioctx **at = (void *)table + bpf_core_field_offset(struct kioctx_table, table);
	struct kioctx *context = 0;

	for (__u32 i = 0; i < AIO_CONTEXTS && i < size; i++) {
		if (bpf_probe_read_kernel(&context, sizeof(context), at + i))
			break;
		if (context && BPF_CORE_READ(context, user_id) == number)
			return (__u64)context;
	}
	return 0;
}

/* (ctx_id, nr, iocbpp) */
static __always_inline int submit_aio(struct pt_regs *regs, struct task_struct *task)
{
	struct submission of = {
		.list = (__u64 *)call_argument(regs, 2),
		.count = call_argument(regs, 1),
	};

	if (!bpf_core_type_exists(struct aio_kiocb))
		return 0;
	of.context = aio_context(task, call_argument(regs, 0));
	if (of.context)
		submit_all(&of);
	return 0;
}

/* Returns what was remembered of the request whose kiocb this is, or NULL. */
static __always_inline struct call *aio_call(struct kiocb *kiocb)
{
	struct aio_kiocb *of = (void *)kiocb;
	struct aio_request request;

	if (!bpf_core_type_exists(struct aio_kiocb))
		return 0;
	request.context = (__u64)BPF_CORE_READ(of, ki_ctx);
	request.iocb = BPF_CORE_READ(of, ki_res.obj);
	return bpf_map_lookup_elem(&aio_calls, &request);
}

#endif
