/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a filesystem writes to the page cache. It tells the end of what a call wrote, whoever moves the file's position
 * meanwhile, and it tells of writes for which there is no call: of io_submit, of a 32-bit program, of a loop device, and
 * of an overlay that copies a file up.
 */
#ifndef MOSTRACE_WRITTEN_BPF_H
#define MOSTRACE_WRITTEN_BPF_H

#include "call.bpf.h"

static __always_inline bool is_write_to(const struct call *call, struct inode *inode)
{
	const struct mostrace_call *entry = &call->entry;

	if (entry->kind != MOSTRACE_CALL_WRITE && entry->kind != MOSTRACE_CALL_SPLICE)
		return false;
	/* A request whose end nothing reports was told when it was submitted, unless it was for a stacked filesystem's file. */
	if (entry->head.flags & MOSTRACE_CALL_OPEN_END)
		return entry->bytes;
	return !entry->ino || entry->ino == number_of(inode);
}

/* Returns an entry of the current task, or of the one that submitted the request that the task executes. */
static __always_inline struct mostrace_call part_of(__u16 kind, struct inode *inode, __u64 offset, __u64 bytes)
{
	struct call *request = current_call();
	__u64 now = bpf_ktime_get_ns();
	struct mostrace_call entry = {
		.head = cause_head(MOSTRACE_CALL, sizeof(entry), now),
		.start_ns = now,
		.offset = offset,
		.bytes = bytes,
		.kind = kind,
	};

	entry.head.flags = MOSTRACE_CALL_PART;
	tell_inode(&entry, inode);
	tell_task(&entry);
	if (request) {
		entry.pid = request->entry.pid;
		entry.tgid = request->entry.tgid;
		entry.uid = request->entry.uid;
		__builtin_memcpy(entry.comm, request->entry.comm, sizeof(entry.comm));
	}
	return entry;
}

/* Returns the kind of a write that is part of no recorded call. What is copied up was passed to no call. */
static __always_inline __u16 kind_of_part(void)
{
	struct task_struct *task = this_task();
	__u16 how;

	if (OF_TASK(task, flags) & PF_NO_CALL || is_compat(task))
		return MOSTRACE_CALL_WRITE;
	how = kind_of_number(running_number(task));
	if (how & CALL_IOCTL)
		return MOSTRACE_CALL_COPY_UP;
	switch (how & CALL_KIND) {
	case MOSTRACE_CALL_OTHER:
	case MOSTRACE_CALL_WRITE:
	case MOSTRACE_CALL_SPLICE:
	case MOSTRACE_CALL_URING:
		return MOSTRACE_CALL_WRITE;
	}
	return MOSTRACE_CALL_COPY_UP;
}

/* Takes the `bytes` at `offset` of a file that the current task has written. */
static __always_inline int tell_filesystem_wrote(struct inode *inode, __u64 offset, __u32 bytes)
{
	struct mostrace_call part;
	struct call *call;

	if (!bytes || !is_traced_filesystem(LOAD(inode, i_sb, s_dev)) ||
	    (LOAD(inode, i_mode) & S_IFMT) != S_IFREG)
		return 0;
	call = current_call();
	if (call && is_write_to(call, inode)) {
		tell_below(call, inode);
		call->written_to = offset + bytes;
		return 0;
	}
	part = part_of(kind_of_part(), inode, offset, bytes);
	part.result = bytes;
	put_cause(&part, sizeof(part));
	return 0;
}

#endif
