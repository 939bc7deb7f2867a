/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests to io_uring in place of system calls. The task is the one that submitted the request, whoever executes it.
 * The file and the offset in it are read at completion, when they are final.
 */
#ifndef MOSTRACE_URING_BPF_H
#define MOSTRACE_URING_BPF_H

#include "call.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct io_kiocb {
	struct file *file;
	__u8 opcode;
};

/* The beginning of each kind of request: io_uring/rw.c, io_uring/sync.c */
struct io_rw {
	struct kiocb kiocb;
};

struct io_sync {
	__s64 len;
	__s64 off;
	int flags;
};

struct io_uring_cqe {
	__s32 res;
};

#pragma clang attribute pop

/* <linux/io_uring.h> */
enum {
	IORING_OP_WRITEV = 2,
	IORING_OP_FSYNC = 3,
	IORING_OP_WRITE_FIXED = 5,
	IORING_OP_SYNC_FILE_RANGE = 8,
	IORING_OP_FALLOCATE = 17,
	IORING_OP_WRITE = 23,
	IORING_OP_FTRUNCATE = 55,
	IORING_OP_WRITEV_FIXED = 61,
};
#define IORING_FSYNC_DATASYNC 1

/* Index of the request among the arguments of the submission tracepoint, and whether completion passes a cqe. */
const volatile __u8 uring_submit_at;
const volatile bool uring_has_cqe;

/* Requests in flight. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, __u64);
	__type(value, struct mostrace_call);
} uring_calls SEC(".maps");

static __always_inline __u16 uring_kind(__u8 opcode)
{
	switch (opcode) {
	case IORING_OP_WRITEV:
	case IORING_OP_WRITE_FIXED:
	case IORING_OP_WRITE:
	case IORING_OP_WRITEV_FIXED:
		return MOSTRACE_CALL_WRITE;
	case IORING_OP_FSYNC:
		return MOSTRACE_CALL_FSYNC;
	case IORING_OP_SYNC_FILE_RANGE:
		return MOSTRACE_CALL_SYNC_RANGE;
	case IORING_OP_FALLOCATE:
		return MOSTRACE_CALL_FALLOCATE;
	case IORING_OP_FTRUNCATE:
		return MOSTRACE_CALL_TRUNCATE;
	default:
		return MOSTRACE_CALL_OTHER;
	}
}

static __always_inline int submit_uring(struct io_kiocb *req)
{
	struct mostrace_call call = {
		.kind = uring_kind(BPF_CORE_READ(req, opcode)),
		.offset = MOSTRACE_NONE,
	};
	__u64 id = bpf_get_current_pid_tgid(), key = (__u64)req;

	if (call.kind == MOSTRACE_CALL_OTHER)
		return 0;
	call.start_ns = bpf_ktime_get_ns();
	call.pid = id;
	call.tgid = id >> 32;
	call.uid = bpf_get_current_uid_gid();
	current_comm(call.comm);
	if (bpf_map_update_elem(&uring_calls, &key, &call, BPF_ANY))
		lose_cause(LOSS_CAUSES_TASKS);
	return 0;
}

static __always_inline void tell_uring_range(struct mostrace_call *call, struct io_kiocb *req, __s64 result)
{
	if (call->kind == MOSTRACE_CALL_WRITE && result > 0) {
		call->bytes = result;
		call->offset = BPF_CORE_READ((struct io_rw *)req, kiocb.ki_pos) - result;
	} else if (call->kind == MOSTRACE_CALL_FSYNC &&
		   BPF_CORE_READ((struct io_sync *)req, flags) & IORING_FSYNC_DATASYNC) {
		call->kind = MOSTRACE_CALL_FDATASYNC;
	}
}

static __always_inline int complete_uring(struct io_kiocb *req, __s64 result)
{
	__u64 key = (__u64)req;
	struct mostrace_call *call = bpf_map_lookup_elem(&uring_calls, &key);
	struct inode *inode;
	struct file *file;

	if (!call)
		return 0;
	file = BPF_CORE_READ(req, file);
	inode = file ? BPF_CORE_READ(file, f_inode) : 0;
	if (inode && is_traced_filesystem(BPF_CORE_READ(inode, i_sb, s_dev))) {
		tell_inode(call, inode);
		call->result = result;
		tell_uring_range(call, req, result);
		call->head = cause_head(MOSTRACE_CALL, sizeof(*call), bpf_ktime_get_ns());
		put_cause(call, sizeof(*call));
	}
	bpf_map_delete_elem(&uring_calls, &key);
	return 0;
}

#endif
