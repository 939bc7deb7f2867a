/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Empty flushes. Several threads may wait for theirs at one sector at once, and they are never
 * issued as themselves: only at the completion is it certain which of them it is that ends. The
 * file is that of the fsync which the submitter is in.
 */
#ifndef MOSTRACE_FLUSH_BPF_H
#define MOSTRACE_FLUSH_BPF_H

#include "file.bpf.h"

/* The inode that a task is syncing. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 12);
	__type(key, __u64);
	__type(value, __u64);
} syncing SEC(".maps");

/* The inode that a flush was submitted for; its fsync holds it until the flush has ended. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 12);
	__type(key, __u64);
	__type(value, __u64);
} synced SEC(".maps");

static __always_inline int begin_sync(struct inode *inode)
{
	__u64 task = bpf_get_current_pid_tgid(), at = (__u64)inode;
	struct block_device *bdev = BPF_CORE_READ(inode, i_sb, s_bdev);

	if (bdev && is_target_disk(BPF_CORE_READ(bdev, bd_disk)))
		bpf_map_update_elem(&syncing, &task, &at, BPF_ANY);
	return 0;
}

static __always_inline int end_sync(void)
{
	__u64 task = bpf_get_current_pid_tgid();

	bpf_map_delete_elem(&syncing, &task);
	return 0;
}

/* (file, datasync) */
SEC("raw_tp/ext4_sync_file_enter")
int mostrace_ext4_sync_enter(__u64 *ctx)
{
	return begin_sync(BPF_CORE_READ((struct file *)ctx[0], f_inode));
}

SEC("raw_tp/ext4_sync_file_exit")
int mostrace_ext4_sync_exit(__u64 *ctx)
{
	return end_sync();
}

/* (inode) */
SEC("raw_tp/f2fs_sync_file_enter")
int mostrace_f2fs_sync_enter(__u64 *ctx)
{
	return begin_sync((struct inode *)ctx[0]);
}

SEC("raw_tp/f2fs_sync_file_exit")
int mostrace_f2fs_sync_exit(__u64 *ctx)
{
	return end_sync();
}

/* An empty flush is queued. */
static __always_inline void flush_queued(struct bio *bio)
{
	__u64 task = bpf_get_current_pid_tgid(), key = (__u64)bio;
	__u64 *inode = bpf_map_lookup_elem(&syncing, &task);

	if (inode)
		bpf_map_update_elem(&synced, &key, inode, BPF_ANY);
}

/* Makes the entry of the file that the flush was for, right after that of the process. */
static __always_inline void flush_ended(struct bio *bio)
{
	__u64 key = (__u64)bio;
	__u64 *inode = bpf_map_lookup_elem(&synced, &key);
	struct run run = {
		.offset = MOSTRACE_NONE,
		.origin = MOSTRACE_ORIGIN_EMPTY,
	};

	if (!inode)
		return;
	run.inode = (struct inode *)*inode;
	put_run(&run, MOSTRACE_COMPLETE);
	bpf_map_delete_elem(&synced, &key);
}

#endif
