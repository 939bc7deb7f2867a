/* SPDX-License-Identifier: GPL-2.0-only */
/* Direct IO through iomap: the file, the offset in it and the waiting task. */
#ifndef MOSTRACE_IOMAP_BPF_H
#define MOSTRACE_IOMAP_BPF_H

#include "bio.bpf.h"
#include "mostrace.h"
#include "told.bpf.h"

/* f2fs of 7.x measures a bio's time in a context of its own, which holds iomap's. */
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

/* Returns the iomap_dio of a bio for which is_iomap is true. */
static __always_inline struct iomap_dio *iomap_dio_of(const struct bio_view *root)
{
	struct bio_iostat_ctx *counted = root->private;

	if (is_f2fs_counted(root))
		return (void *)BPF_CORE_READ(counted, post_read_ctx);
	return root->private;
}

static __always_inline void see_direct(struct window *w, struct direct *direct, const struct bio_view *root)
{
	see_file(w, direct, LOAD(iomap_dio_of(root), iocb, ki_filp));
}

/* Returns the task that waits for the bio's dio to end, or NULL. */
static __always_inline struct task_struct *direct_waiter(const struct bio_view *root)
{
	struct iomap_dio *dio;

	if (!is_iomap(root))
		return 0;
	dio = iomap_dio_of(root);
	return BPF_CORE_READ(dio, wait_for_completion) ? BPF_CORE_READ(dio, submit.waiter) : 0;
}

/*
 * True if iomap adds a bio's bytes to dio->size only after it has submitted the bio. No type shows this; it began with
 * 7.0, with the series that added bio_iov_iter_bounce.
 */
const volatile bool size_lags;

/*
 * Returns the file position of a direct IO's bio that is being queued, which begins `sector` sectors into its
 * filesystem; MOSTRACE_NONE if it is not such a bio, or if the position is not known. If no tracepoint reports it, it is
 * calculated: ki_pos is moved only at the end of the whole dio; dio->size is the number of bytes up to here.
 *
 * A write that ends within a block is padded with zeros up to the block's end, and likewise in front; these bios do not
 * count in dio->size. A block is laid out on the disk as in the file, so the place in its block at which a bio begins
 * distinguishes the pads from the data.
 */
static READS_MUCH __u64 direct_pos(struct window *w, struct direct *direct, const struct bio_view *root, __u64 sector)
{
	__u64 begin, done, end, mask, place;
	struct inode *inode;
	struct kiocb *iocb;

	direct->file = 0;
	if (tells_direct) {
		begin = told_pos(w, direct, root->bio, sector);
		if (direct->file)
			return begin;
	}
	if (!is_iomap(root))
		return MOSTRACE_NONE;
	OPEN(w, struct iomap_dio, iomap_dio_of(root));
	iocb = SEE(w, struct iomap_dio, iocb);
	done = SEE(w, struct iomap_dio, size);
	begin = LOAD(iocb, ki_pos);
	see_file(w, direct, LOAD(iocb, ki_filp));
	inode = direct->inode;
	end = begin + done;
	mask = (1ULL << LOAD(inode, i_blkbits)) - 1;
	place = (sector << 9) & mask;
	if (size_lags && (end & mask) == place)
		return end;
	if (!size_lags && done >= root->size && ((end - root->size) & mask) == place)
		return end - root->size;
	/* The pad behind the data. */
	if (root->size <= mask && done && (end & mask) == place)
		return end;
	/* The pad in front of the data. */
	if (!done && root->size == (begin & mask) && !place)
		return begin - root->size;
	return MOSTRACE_NONE;
}

#endif
