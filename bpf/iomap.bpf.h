/* SPDX-License-Identifier: GPL-2.0-only */
/* Direct IO through iomap: the file, the place in it and the task that waits. */
#ifndef MOSTRACE_IOMAP_BPF_H
#define MOSTRACE_IOMAP_BPF_H

#include "bio.bpf.h"
#include "mostrace.h"

/* f2fs of 7.x counts a bio's time in a context of its own, and keeps iomap's inside. */
static __always_inline bool is_f2fs_counted(const struct bio_view *root)
{
	return bpf_core_type_exists(struct bio_iostat_ctx) && symbols.f2fs_dio_end_bio &&
	       root->end_io == symbols.f2fs_dio_end_bio;
}

static __always_inline bool is_iomap(const struct bio_view *root)
{
	return bpf_core_type_exists(struct iomap_dio) &&
	       (is_f2fs_counted(root) || (symbols.iomap_dio_bio_end_io &&
					  root->end_io == symbols.iomap_dio_bio_end_io));
}

/* Of a bio that is_iomap. */
static __always_inline struct iomap_dio *iomap_dio_of(const struct bio_view *root)
{
	struct bio_iostat_ctx *counted = root->private;

	if (is_f2fs_counted(root))
		return (void *)BPF_CORE_READ(counted, post_read_ctx);
	return root->private;
}

/* What a bio that is_iomap does direct IO of. */
struct direct {
	struct file *file;	/* NULL: not looked for */
	struct inode *inode;
};

static __always_inline void see_direct(struct window *w, struct direct *direct, const struct bio_view *root)
{
	direct->file = LOAD(iomap_dio_of(root), iocb, ki_filp);
	OPEN(w, struct file, direct->file);
	direct->inode = SEE(w, struct file, f_inode);
}

/* The task that waits for the bio's dio to end, or NULL. */
static __always_inline struct task_struct *direct_waiter(const struct bio_view *root)
{
	struct iomap_dio *dio;

	if (!is_iomap(root))
		return 0;
	dio = iomap_dio_of(root);
	return BPF_CORE_READ(dio, wait_for_completion) ? BPF_CORE_READ(dio, submit.waiter) : 0;
}

/*
 * Whether iomap adds a bio's bytes to dio->size only when it has submitted it. No type tells: 7.0 began to,
 * with the series that brought bio_iov_iter_bounce.
 */
const volatile bool size_lags;

/*
 * File position of a bio of direct IO that is being queued, which begins `sector` sectors into its
 * filesystem; MOSTRACE_NONE where it is no such bio, or not known. ki_pos is moved only at the end of the
 * whole dio; dio->size is the bytes up to here.
 *
 * A write that ends within a block is padded with zeros up to the block's end, and likewise in front; these
 * bios do not count in dio->size. A block lies on the disk as it does in the file: where in its block a bio
 * begins tells the pads from the data.
 */
static READS_MUCH __u64 direct_pos(struct window *w, struct direct *direct, const struct bio_view *root, __u64 sector)
{
	__u64 begin, done, end, mask, place;
	struct inode *inode;
	struct kiocb *iocb;

	direct->file = 0;
	if (!is_iomap(root))
		return MOSTRACE_NONE;
	OPEN(w, struct iomap_dio, iomap_dio_of(root));
	iocb = SEE(w, struct iomap_dio, iocb);
	done = SEE(w, struct iomap_dio, size);
	begin = LOAD(iocb, ki_pos);
	direct->file = LOAD(iocb, ki_filp);
	OPEN(w, struct file, direct->file);
	direct->inode = inode = SEE(w, struct file, f_inode);
	end = begin + done;
	mask = (1ULL << LOAD(inode, i_blkbits)) - 1;
	place = (sector << 9) & mask;
	if (size_lags && (end & mask) == place)
		return end;
	if (!size_lags && done >= root->size && ((end - root->size) & mask) == place)
		return end - root->size;
	/* Behind the data. */
	if (root->size <= mask && done && (end & mask) == place)
		return end;
	/* In front of it. */
	if (!done && root->size == (begin & mask) && !place)
		return begin - root->size;
	return MOSTRACE_NONE;
}

#endif
