/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Syncs of files, as the filesystem reports them. Most are part of a call that is recorded. The others are a request's to io_submit,
 * or are asked for without a call: by a worker that ends a direct write, a loop device's worker, a 32-bit program, swapon.
 */
#ifndef MOSTRACE_SYNCED_BPF_H
#define MOSTRACE_SYNCED_BPF_H

#include "call.bpf.h"

/* Returns the kiocb for which a worker syncs a file, or NULL. What the worker executes is recognised by the file that it has. */
static __always_inline struct kiocb *worked_kiocb(struct inode *inode)
{
	struct task_struct *task = this_task();
	struct worker *worker;
	struct fsync_iocb *fsync;
	struct iomap_dio *dio;
	void *work;

	if (!(OF_TASK(task, flags) & PF_WQ_WORKER))
		return 0;
	worker = BPF_CORE_READ(task_kthread(task), data);
	work = BPF_CORE_READ(worker, current_work);
	if (bpf_core_type_exists(struct fsync_iocb)) {
		fsync = work - bpf_core_field_offset(struct fsync_iocb, work);
		if (BPF_CORE_READ(fsync, file, f_inode) == inode)
			return (struct kiocb *)fsync;
	}
	if (bpf_core_field_exists(((struct iomap_dio *)0)->aio.work)) {
		dio = work - bpf_core_field_offset(struct iomap_dio, aio.work);
		if (BPF_CORE_READ(dio, iocb, ki_filp, f_inode) == inode)
			return BPF_CORE_READ(dio, iocb);
	}
	return 0;
}

/* Returns true if the sync is part of a request to io_uring, which has an entry of its own from 5.17 on. */
static __always_inline bool is_of_ring(struct kiocb *kiocb)
{
#ifdef MOSTRACE_LOOPLESS
	return false;
#else
	struct task_struct *task = this_task();
	__u64 request = (__u64)kiocb;

	if (kiocb)
		return bpf_map_lookup_elem(&uring_calls, &request);
	return OF_TASK(task, flags) & PF_IO_WORKER || running_kind() == MOSTRACE_CALL_URING;
#endif
}

/* Records the file of an msync, which has only an address as argument, and the one that a stacked filesystem's fsync leads to. */
static __always_inline void tell_synced(struct call *call, struct inode *inode)
{
	switch (call->entry.kind) {
	case MOSTRACE_CALL_MSYNC:
	case MOSTRACE_CALL_FSYNC:
	case MOSTRACE_CALL_FDATASYNC:
		tell_below(call, inode);
	}
}

/* The filesystem begins to sync a file: `kind` is that of the call that would do so. */
static __always_inline int begin_file_sync(struct inode *inode, __u16 kind)
{
	struct call *call = current_call(), *request = 0;
	struct kiocb *kiocb;

	if (!is_traced_filesystem(LOAD(inode, i_sb, s_dev)))
		return 0;
	if (call) {
		tell_synced(call, inode);
		return 0;
	}
	kiocb = worked_kiocb(inode);
	if (is_of_ring(kiocb))
		return 0;
	call = room_for_call();
	if (!call)
		return 0;
	if (kiocb)
		request = aio_call(kiocb);
	if (request) {
		*call = *request;
	} else {
		*call = (struct call){ .entry.offset = MOSTRACE_NONE };
		call->entry.start_ns = bpf_ktime_get_ns();
		tell_task(&call->entry);
	}
	/* Only of a request that does nothing else, all is told. */
	if (!request || request->entry.kind == MOSTRACE_CALL_WRITE)
		call->entry.head.flags = MOSTRACE_CALL_PART;
	call->entry.kind = kind;
	tell_inode(&call->entry, inode);
	call->is_filesystems = true;
	return 0;
}

static __always_inline int end_file_sync(long result)
{
	struct call *call = find_call();

	if (!call || !call->is_filesystems || call->entry.kind == MOSTRACE_CALL_OTHER)
		return 0;
	call->entry.result = result;
	end_entry(call);
	put_call(call);
	close_call(call);
	return 0;
}

#endif
