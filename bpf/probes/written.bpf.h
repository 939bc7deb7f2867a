/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a filesystem writes to the page cache. It tells the end of what a call wrote, whoever moves the file's position
 * meanwhile, and it tells of writes for which there is no call: of io_submit, of a 32-bit program, of a loop device.
 */
#ifndef MOSTRACE_WRITTEN_BPF_H
#define MOSTRACE_WRITTEN_BPF_H

#include "call.bpf.h"

static __always_inline bool is_write_to(const struct call *call, struct inode *inode)
{
	const struct mostrace_call *entry = &call->entry;

	return (entry->kind == MOSTRACE_CALL_WRITE || entry->kind == MOSTRACE_CALL_SPLICE) &&
	       (!entry->ino || entry->ino == inode_ino(inode));
}

static __always_inline void put_part(struct inode *inode, __u64 offset, __u32 bytes)
{
	__u64 now = bpf_ktime_get_ns();
	struct mostrace_call entry = {
		.head = cause_head(MOSTRACE_CALL, sizeof(entry), now),
		.start_ns = now,
		.offset = offset,
		.bytes = bytes,
		.result = bytes,
		.kind = MOSTRACE_CALL_WRITE,
	};

	entry.head.flags = MOSTRACE_CALL_PART;
	tell_inode(&entry, inode);
	tell_task(&entry);
	put_cause(&entry, sizeof(entry));
}

/* Takes the `bytes` at `offset` of a file that the current task has written. */
static __always_inline int tell_filesystem_wrote(struct inode *inode, __u64 offset, __u32 bytes)
{
	struct call *call;

	if (!bytes || !is_traced_filesystem(LOAD(inode, i_sb, s_dev)) ||
	    (LOAD(inode, i_mode) & S_IFMT) != S_IFREG)
		return 0;
	call = current_call();
	if (call && is_write_to(call, inode))
		call->written_to = offset + bytes;
	else
		put_part(inode, offset, bytes);
	return 0;
}

#endif
