/* SPDX-License-Identifier: GPL-2.0-only */
/* The traced disk or partition, and the positions of tracepoints' arguments. */
#ifndef MOSTRACE_TARGET_BPF_H
#define MOSTRACE_TARGET_BPF_H

#include "compat.bpf.h"
#include "tracepoint.bpf.h"

#define PATHS_MAX 8

/* Filled in by user space before loading. */
const volatile struct {
	__u32 disk_dev;		/* major << 20 | minor of the whole disk */
	__u32 dev;		/* the traced disk or partition */
	__u64 start;		/* first sector on the disk */
	__u64 end;		/* one past the last */
	__u32 path_count;
	__u32 paths[PATHS_MAX];	/* the disks whose requests are the target's: those of an NVMe namespace with several paths */
} target = { .end = ~0ULL };

static __always_inline bool is_path_disk(__u32 disk)
{
	for (__u32 i = 0; i < PATHS_MAX; i++)
		if (i < target.path_count && target.paths[i] == disk)
			return true;
	return false;
}

/* Index of the bio or request among a tracepoint's arguments: 5.10 has the queue first. */
const volatile struct {
	__u8 bio_queue;
	__u8 split;
	__u8 getrq;
	__u8 backmerge;
	__u8 frontmerge;
	__u8 remap;
	__u8 rq_insert;
	__u8 rq_issue;
	__u8 rq_merge;
	__u8 rq_requeue;
} args;

/* The bio or request, or the argument that follows it by `after`. The verifier drops the dead branches. */
#define ARG_AFTER(ctx, index, after)					\
	((index) == 0 ? CTX(ctx, 0 + (after)) :				\
	 (index) == 1 ? CTX(ctx, 1 + (after)) : CTX(ctx, 2 + (after)))
#define ARG(ctx, index) ((void *)ARG_AFTER(ctx, index, 0))

static __always_inline bool is_target_range(__u64 sector, __u32 bytes)
{
	return sector < target.end && sector + ((bytes + 511) >> 9) > target.start;
}

#endif
