/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Empty flushes. Several threads may wait for theirs at one sector at once, and they are never issued as themselves:
 * only at the completion is it certain which of them ends, so the entry is made then. The file is that of the fsync
 * that the submitter is in.
 */
#ifndef MOSTRACE_FLUSH_BPF_H
#define MOSTRACE_FLUSH_BPF_H

#include "dirtier.bpf.h"

/* A flush in flight. */
struct flush {
	struct mostrace_process process;
	struct inode *inode;	/* the synced inode, or NULL; its fsync holds it until the flush has ended */
};

/* The flushes by their bios. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 12);
	__type(key, __u64);
	__type(value, struct flush);
} flushes SEC(".maps");

static __always_inline int begin_sync(struct inode *inode)
{
	__u64 task = bpf_get_current_pid_tgid(), at = (__u64)inode;

	if (!is_traced_inode(inode))
		return 0;
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
	return begin_sync(LOAD((struct file *)ctx[0], f_inode));
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

/* Keeps the current entry until its bio completes. Returns false if too many flushes wait. */
static __noinline bool keep_flush(const struct work *w, struct bio *bio)
{
	__u64 task = bpf_get_current_pid_tgid(), key = (__u64)bio;
	__u64 *inode = bpf_map_lookup_elem(&syncing, &task);
	struct flush flush = {
		.process = w->process,
		.inode = inode ? (struct inode *)*inode : 0,
	};

	return !bpf_map_update_elem(&flushes, &key, &flush, BPF_ANY);
}

/* If the bio is a flush, makes its entry, and that of its file behind it. */
static __noinline int end_flush(struct bio *bio)
{
	struct work *w = work_of(WORK_FLUSH);
	__u64 key = (__u64)bio;
	struct flush *flush = bpf_map_lookup_elem(&flushes, &key);
	struct run run = {
		.offset = MOSTRACE_NONE,
		.origin = MOSTRACE_ORIGIN_EMPTY,
	};

	if (!w || !flush)
		return 0;
	w->used = 0;
	w->process = flush->process;
	w->process.head.time_ns = bpf_ktime_get_ns();
	w->process.head.cpu = bpf_get_smp_processor_id();
	w->process.head.stage = MOSTRACE_COMPLETE;
	run.inode = flush->inode;
	bpf_map_delete_elem(&flushes, &key);
	if (run.inode)
		put_run(w, WORK_FLUSH, &run);
	put_all(w);
	return 0;
}

#endif
