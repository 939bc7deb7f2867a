/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The metadata blocks that ext4's files free: directories, extents, attributes. Only then is it certain whose they
 * were, because the code that writes them knows only blocks.
 */
#ifndef MOSTRACE_FREED_BPF_H
#define MOSTRACE_FREED_BPF_H

#include "dirtier.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block___bits {
	__u8 s_blocksize_bits;
};

#pragma clang attribute pop

/* fs/ext4/ext4.h */
#define EXT4_FREE_BLOCKS_METADATA 1
#define EXT4_NOJOURNAL_MAX_REF_COUNT 4096

/* Stores the transaction that the current task is part of, 0 without a journal. Returns false if it cannot be read. */
static __always_inline bool current_tid(__u32 *tid)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct jbd2_journal_handle *handle = BPF_CORE_READ(task, journal_info);
	struct transaction_s *transaction;

	*tid = 0;
	if ((__u64)handle <= EXT4_NOJOURNAL_MAX_REF_COUNT)
		return true;
	if (!knows_jbd2())
		return false;
	transaction = JBD2(handle, h_transaction, HANDLE_TRANSACTION);
	*tid = JBD2(transaction, t_tid, TRANSACTION_TID);
	return true;
}

/* (inode, block, count, flags) */
SEC("raw_tp/ext4_free_blocks")
int mostrace_ext4_free_blocks(__u64 *ctx)
{
	struct inode *inode = (struct inode *)ctx[0];
	struct super_block *sb = LOAD(inode, i_sb);
	struct block_device *bdev = LOAD(sb, s_bdev);
	__u8 bits = LOAD((struct super_block___bits *)sb, s_blocksize_bits);
	__u32 disk = disk_number(LOAD(bdev, bd_disk));
	struct mostrace_freed freed = {
		.head = {
			.type = MOSTRACE_FREED,
			.size = sizeof(freed),
			.dev = target.disk_dev,
			.time_ns = bpf_ktime_get_ns(),
			.sector = ctx[1] << ((bits - 9) & 63),
			.bytes = ctx[2] << (bits & 63),
			.cpu = bpf_get_smp_processor_id(),
		},
	};

	if (!(ctx[3] & EXT4_FREE_BLOCKS_METADATA))
		return 0;
	if (disk != target.disk_dev) {
		/* The filesystem is on a disk above, or beside the traced one, which has its journal. */
		if (!has_disk(&above, disk) && !is_traced_filesystem(LOAD(sb, s_dev)))
			return 0;
		freed.home = MOSTRACE_HOME_FILESYSTEM;
	} else {
		freed.head.sector += first_sector(bdev);
	}
	freed.ino = inode_ino(inode);
	freed.generation = LOAD(inode, i_generation);
	freed.s_dev = LOAD(sb, s_dev);
	if (!current_tid(&freed.tid))
		return 0;
	if (bpf_ringbuf_output(&shared_ring, &freed, sizeof(freed), wake_flags(&shared_ring, freed.head.time_ns)))
		lose(LOSS_ENTRIES_RING);
	return 0;
}

#endif
