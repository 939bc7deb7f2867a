/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a filesystem cuts off a file and where it allocates, zeroes or moves a range of one. Every way leads here: system calls,
 * those of 32-bit programs, ioctls, madvise, io_uring, O_TRUNC, an overlay, a loop device, the NFS server. A recorded call has the
 * file and the range from here. Anything else has an entry of its own, which is part of no call.
 */
#ifndef MOSTRACE_EMPTIED_BPF_H
#define MOSTRACE_EMPTIED_BPF_H

#include "written.bpf.h"

/* <linux/falloc.h> */
#define FALLOC_FL_KEEP_SIZE 0x01U
#define FALLOC_FL_PUNCH_HOLE 0x02U
#define FALLOC_FL_COLLAPSE_RANGE 0x08U
#define FALLOC_FL_INSERT_RANGE 0x20U

/* Returns the task's call if it is of this kind and about this inode, and its end will be seen. */
static __always_inline struct call *call_that(__u16 kind, struct inode *inode)
{
	struct call *call = current_call();

	if (!call || call->entry.kind != kind || call->entry.head.flags & MOSTRACE_CALL_OPEN_END)
		return 0;
	return call->file && call->entry.ino && call->entry.ino != inode_ino(inode) ? 0 : call;
}

/* The file is cut off at its size. An inode that nobody holds is being freed. */
static __always_inline int tell_truncated(struct inode *inode)
{
	struct mostrace_call part;
	struct call *call;
	__u64 size;

	if (!is_traced_filesystem(LOAD(inode, i_sb, s_dev)) || (LOAD(inode, i_mode) & S_IFMT) != S_IFREG ||
	    !LOAD(inode, i_count.counter))
		return 0;
	size = LOAD(inode, i_size);
	call = call_that(MOSTRACE_CALL_TRUNCATE, inode);
	if (call) {
		tell_below(call, inode);
		call->entry.offset = size;
		return 0;
	}
	part = part_of(MOSTRACE_CALL_TRUNCATE, inode, size, 0);
	put_cause(&part, sizeof(part));
	return 0;
}

static __always_inline int tell_allocated(struct inode *inode, __u64 offset, __u64 bytes, __u32 mode)
{
	struct mostrace_call part;
	struct call *call;

	if (!is_traced_filesystem(LOAD(inode, i_sb, s_dev)))
		return 0;
	call = call_that(MOSTRACE_CALL_FALLOCATE, inode);
	if (call) {
		tell_below(call, inode);
		call->entry.offset = offset;
		call->entry.bytes = bytes;
		*(__u32 *)call->entry.first_bytes = mode;
		return 0;
	}
	/* The two modes that change no contents. */
	if (!(mode & ~FALLOC_FL_KEEP_SIZE))
		return 0;
	part = part_of(MOSTRACE_CALL_FALLOCATE, inode, offset, bytes);
	part.head.flags |= MOSTRACE_CALL_MODE;
	*(__u32 *)part.first_bytes = mode;
	put_cause(&part, sizeof(part));
	return 0;
}

/* (inode) */
SEC("raw_tp/ext4_truncate_enter")
int cause_ext4_truncate_enter(__u64 *ctx)
{
	return tell_truncated((struct inode *)ctx[0]);
}

/* (inode, offset, len, mode): only for modes that allocate, and from 6.15 on for all */
SEC("raw_tp/ext4_fallocate_enter")
int cause_ext4_fallocate_enter(__u64 *ctx)
{
	return tell_allocated((struct inode *)ctx[0], ctx[1], ctx[2], ctx[3]);
}

/* (inode, offset, len, 0) */
SEC("raw_tp/ext4_punch_hole")
int cause_ext4_punch_hole(__u64 *ctx)
{
	return tell_allocated((struct inode *)ctx[0], ctx[1], ctx[2], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
}

/* (inode, offset, len, mode) */
SEC("raw_tp/ext4_zero_range")
int cause_ext4_zero_range(__u64 *ctx)
{
	return tell_allocated((struct inode *)ctx[0], ctx[1], ctx[2], ctx[3]);
}

/* (inode, offset, len) */
SEC("raw_tp/ext4_collapse_range")
int cause_ext4_collapse_range(__u64 *ctx)
{
	return tell_allocated((struct inode *)ctx[0], ctx[1], ctx[2], FALLOC_FL_COLLAPSE_RANGE);
}

/* (inode, offset, len) */
SEC("raw_tp/ext4_insert_range")
int cause_ext4_insert_range(__u64 *ctx)
{
	return tell_allocated((struct inode *)ctx[0], ctx[1], ctx[2], FALLOC_FL_INSERT_RANGE);
}

/* (inode) */
SEC("raw_tp/f2fs_truncate")
int cause_f2fs_truncate(__u64 *ctx)
{
	return tell_truncated((struct inode *)ctx[0]);
}

/* (inode, mode, offset, len, ret): when it has ended */
SEC("raw_tp/f2fs_fallocate")
int cause_f2fs_fallocate(__u64 *ctx)
{
	return tell_allocated((struct inode *)ctx[0], ctx[2], ctx[3], ctx[1]);
}

#endif
