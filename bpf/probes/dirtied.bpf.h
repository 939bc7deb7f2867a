/* SPDX-License-Identifier: GPL-2.0-only */
/* The blocks that a handle modified: their place on the disk, and their entry. */
#ifndef MOSTRACE_DIRTIED_BPF_H
#define MOSTRACE_DIRTIED_BPF_H

#include "bio.bpf.h"
#include "causes.bpf.h"

/* A block in a transaction. */
struct claim {
	__u64 block;
	__u64 bdev;
	__u32 tid;
	__u32 pad;
};

/* Finds the block's place, as find_home of journal.bpf.h does for copies. */
static __always_inline void find_home_of(struct mostrace_dirtied *entry, struct buffer_head *bh,
					 struct block_device *bdev, __u64 block)
{
	entry->head.bytes = LOAD(bh, b_size);
	entry->head.sector = block * (entry->head.bytes >> 9);
	entry->home = MOSTRACE_HOME_FILESYSTEM;
	if (disk_number(LOAD(bdev, bd_disk)) == target.disk_dev) {
		entry->head.sector += first_sector(bdev);
		entry->home = MOSTRACE_HOME_DISK;
	}
}

static __always_inline struct claim claim_of(const struct mostrace_dirtied *entry, struct buffer_head *bh)
{
	return (struct claim){
		.block = LOAD(bh, b_blocknr),
		.bdev = (__u64)LOAD(bh, b_bdev),
		.tid = entry->tid,
	};
}

static __always_inline void put_dirtied(struct mostrace_dirtied *entry, struct buffer_head *bh,
					const struct claim *claim)
{
	find_home_of(entry, bh, (struct block_device *)claim->bdev, claim->block);
	put_cause(entry, sizeof(*entry));
}

#endif
