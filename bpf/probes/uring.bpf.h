/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests to io_uring in place of system calls. The task is the one that submitted the request, whoever executes it.
 * The file and the offset in it are read at completion, when they are final.
 */
#ifndef MOSTRACE_URING_BPF_H
#define MOSTRACE_URING_BPF_H

#include "call.bpf.h"
#include "ringrequest.bpf.h"

/* Index of the request among the arguments of the submission tracepoint, and whether completion passes a cqe. */
const volatile __u8 uring_submit_at;
const volatile bool uring_has_cqe;

static __always_inline __u16 uring_kind(__u8 opcode)
{
	switch (opcode) {
	case RING_WRITEV:
	case RING_WRITE_FIXED:
	case RING_WRITE:
	case RING_WRITEV_FIXED:
		return MOSTRACE_CALL_WRITE;
	case RING_FSYNC:
		return MOSTRACE_CALL_FSYNC;
	case RING_SYNC_FILE_RANGE:
		return MOSTRACE_CALL_SYNC_RANGE;
	case RING_FALLOCATE:
		return MOSTRACE_CALL_FALLOCATE;
	case RING_FTRUNCATE:
		return MOSTRACE_CALL_TRUNCATE;
	case RING_RENAMEAT:
		return MOSTRACE_CALL_RENAME;
	case RING_UNLINKAT:
		return MOSTRACE_CALL_UNLINK;
	case RING_MKDIRAT:
		return MOSTRACE_CALL_MKDIR;
	case RING_SYMLINKAT:
	case RING_LINKAT:
		return MOSTRACE_CALL_LINK;
	default:
		return MOSTRACE_CALL_OTHER;
	}
}

static __always_inline bool has_file(__u16 kind)
{
	return kind == MOSTRACE_CALL_WRITE || kind == MOSTRACE_CALL_FSYNC || kind == MOSTRACE_CALL_FDATASYNC ||
	       kind == MOSTRACE_CALL_SYNC_RANGE || kind == MOSTRACE_CALL_FALLOCATE ||
	       kind == MOSTRACE_CALL_TRUNCATE;
}

/* Returns the flags RWF_… of a request that writes. Before 5.19 they are those of its kiocb. */
static __always_inline __u32 request_rwf(struct io_kiocb *req)
{
	struct io_rw *rw = (struct io_rw *)req;

	return bpf_core_field_exists(rw->flags) ? BPF_CORE_READ(rw, flags) : BPF_CORE_READ(rw, kiocb.ki_flags);
}

/* Returns true if a request that is no sync returns only when what it did is durable. */
static __always_inline bool asks_for_durability(const struct mostrace_call *call, struct io_kiocb *req, struct file *file)
{
	return call->kind == MOSTRACE_CALL_WRITE ? writes_through(file, request_rwf(req)) :
	       call->kind == MOSTRACE_CALL_FALLOCATE && allocates_through(file, 0);
}

/* Tells the range of a request that does not write; it stays as it was asked for. */
static __always_inline void tell_named_range(struct mostrace_call *call, struct io_kiocb *req)
{
	struct io_sync *sync = (struct io_sync *)req;

	switch (call->kind) {
	case MOSTRACE_CALL_FSYNC:
		if (BPF_CORE_READ(sync, flags) & RING_DATASYNC)
			call->kind = MOSTRACE_CALL_FDATASYNC;
		break;
	case MOSTRACE_CALL_FALLOCATE:
		*(__u32 *)call->first_bytes = BPF_CORE_READ(sync, mode);
		call->head.flags |= MOSTRACE_CALL_MODE;
		/* fallthrough */
	case MOSTRACE_CALL_SYNC_RANGE:
		call->offset = BPF_CORE_READ(sync, off);
		call->bytes = BPF_CORE_READ(sync, len);
		break;
	case MOSTRACE_CALL_TRUNCATE:
		if (bpf_core_type_exists(struct io_ftrunc))
			call->offset = BPF_CORE_READ((struct io_ftrunc *)req, len);
		break;
	}
}

static __always_inline void tell_uring_range(struct mostrace_call *call, struct io_kiocb *req, __s64 result)
{
	if (call->kind != MOSTRACE_CALL_WRITE) {
		tell_named_range(call, req);
	} else if (result > 0) {
		call->bytes = result;
		call->offset = BPF_CORE_READ((struct io_rw *)req, kiocb.ki_pos) - result;
	}
}

/* Sets the range that a write asks for. The offset ~0 means the file's position; with O_APPEND it does not count. */
static __always_inline void tell_asked_range(struct mostrace_call *call, struct io_kiocb *req, struct file *file)
{
	__u8 opcode = BPF_CORE_READ(req, opcode);
	bool is_vector = opcode == RING_WRITEV || opcode == RING_WRITEV_FIXED;

	if (call->kind != MOSTRACE_CALL_WRITE) {
		tell_named_range(call, req);
		return;
	}
	if (!(BPF_CORE_READ(file, f_flags) & O_APPEND))
		call->offset = BPF_CORE_READ((struct io_rw *)req, kiocb.ki_pos);
	call->bytes = is_vector ? MOSTRACE_NONE : BPF_CORE_READ((struct io_rw *)req, len);
}

/*
 * Begins a request that posts no completion if it succeeds. No tracepoint reports its end, so the entry is made when it
 * is submitted, as far as it is known then. A request with a path has its entry when its handle ends.
 */
static __always_inline void begin_open_end(struct call *call, struct io_kiocb *req)
{
	struct mostrace_call *entry = &call->entry;
	struct inode *inode;
	struct file *file;

	entry->head.flags = MOSTRACE_CALL_OPEN_END;
	if (!has_file(entry->kind))
		return;
	file = submitted_file(req);
	inode = file ? BPF_CORE_READ(file, f_inode) : 0;
	if (!inode || !is_traced_filesystem(BPF_CORE_READ(inode, i_sb, s_dev)))
		return;
	tell_inode(entry, inode);
	tell_asked_range(entry, req, file);
	if (asks_for_durability(entry, req, file))
		entry->head.flags |= MOSTRACE_CALL_THROUGH;
	call->is_ours = true;
	end_entry(call);
	put_call(call);
}

static __always_inline int submit_uring(struct io_kiocb *req)
{
	struct call call = {
		.entry.kind = uring_kind(BPF_CORE_READ(req, opcode)),
		.entry.offset = MOSTRACE_NONE,
	};
	__u64 key = (__u64)req;

	/* The request that was here before may have posted no completion. */
	bpf_map_delete_elem(&uring_calls, &key);
	if (call.entry.kind == MOSTRACE_CALL_OTHER)
		return 0;
	call.entry.start_ns = bpf_ktime_get_ns();
	tell_task(&call.entry);
	if (BPF_CORE_READ(req, flags) & RING_SKIP_SUCCESS)
		begin_open_end(&call, req);
	if (bpf_map_update_elem(&uring_calls, &key, &call, BPF_ANY))
		lose_cause(LOSS_CAUSES_TASKS);
	return 0;
}

/* A request with a path involves the filesystem if it joined the journal, as a system call does. */
static __always_inline int complete_uring(struct io_kiocb *req, __s64 result)
{
	__u64 key = (__u64)req;
	struct call *call = bpf_map_lookup_elem(&uring_calls, &key);
	struct inode *inode = 0;
	struct file *file;

	if (!call)
		return 0;
	file = has_file(call->entry.kind) ? BPF_CORE_READ(req, file) : 0;
	if (file)
		inode = BPF_CORE_READ(file, f_inode);
	/* A request that was to post no completion has failed. */
	call->entry.head.flags = 0;
	if (inode && is_traced_filesystem(BPF_CORE_READ(inode, i_sb, s_dev))) {
		tell_inode(&call->entry, inode);
		call->is_ours = true;
	}
	if (call->is_ours) {
		if (inode) {
			tell_uring_range(&call->entry, req, result);
			call->asks |= asks_for_durability(&call->entry, req, file);
		}
		if (call->asks && result >= 0)
			call->entry.head.flags |= MOSTRACE_CALL_THROUGH;
		call->entry.result = result;
		end_entry(call);
		put_call(call);
	}
	bpf_map_delete_elem(&uring_calls, &key);
	return 0;
}

#endif
