/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The file of a bio of direct IO, on a kernel with the patch of kernel-patches/upstream/iomap: the tracepoint
 * iomap_dio_submit_bio reports it right before the bio is submitted, so that nothing is read from iomap's own structs.
 */
#ifndef MOSTRACE_TOLD_BPF_H
#define MOSTRACE_TOLD_BPF_H

#include "bio.bpf.h"
#include "mostrace.h"

/* The file of a direct IO's bio. */
struct direct {
	struct file *file;	/* NULL: not looked up */
	struct inode *inode;
	struct dentry *dentry;	/* the name used to open it */
};

static __always_inline void see_file(struct window *w, struct direct *direct, struct file *file)
{
	direct->file = file;
	OPEN(w, struct file, file);
	direct->inode = SEE(w, struct file, f_inode);
	direct->dentry = SEE(w, struct file, f_path.dentry);
}

/* True if the kernel has the tracepoint. */
const volatile bool tells_direct;

struct told_direct {
	struct file *file;
	__u64 pos;
	__u64 sector;		/* of the device that the bio is for */
};

/* The bios that are about to be queued. User space makes it smaller where there is no tracepoint. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 12);
	__type(key, __u64);
	__type(value, struct told_direct);
} told_directs SEC(".maps");

/*
 * Takes the file that was reported for a bio that is being queued, which begins `sector` sectors into its device. Returns
 * the position in the file, or MOSTRACE_NONE if nothing was reported.
 */
static __noinline __u64 told_pos(struct window *w, struct direct *direct, struct bio *bio, __u64 sector)
{
	struct told_direct *told;
	__u64 key = (__u64)bio;
	__u64 pos;

	told = bpf_map_lookup_elem(&told_directs, &key);
	/* A bio of this address that failed before it was queued may have left something behind. */
	if (!told || told->sector != sector)
		return MOSTRACE_NONE;
	pos = told->pos;
	see_file(w, direct, told->file);
	bpf_map_delete_elem(&told_directs, &key);
	return pos;
}

/* A bio of direct IO is about to be submitted. Those that are not queued for the traced disk are not kept. */
static __always_inline int tell_direct(struct kiocb *iocb, struct bio *bio, __u64 pos)
{
	struct block_device *bdev = LOAD((struct bio___bdev *)bio, bi_bdev);
	struct told_direct told = {
		.file = LOAD(iocb, ki_filp),
		.pos = pos,
		.sector = LOAD(bio, bi_iter.bi_sector),
	};
	__u32 disk = disk_number(LOAD(bdev, bd_disk));
	__u64 key = (__u64)bio;

	if (disk == target.disk_dev || has_disk(&above, disk))
		bpf_map_update_elem(&told_directs, &key, &told, BPF_ANY);
	return 0;
}

#endif
