/* SPDX-License-Identifier: GPL-2.0-only */
/* Direct IO: the pages belong to the caller, so the file is found through the bio's owner. */
#ifndef MOSTRACE_DIRECT_BPF_H
#define MOSTRACE_DIRECT_BPF_H

#include "pages.bpf.h"

/* fs/direct-io.c: the structure that blockdev_direct_IO (vfat) puts into bi_private. */
static __always_inline bool is_dio(__u64 end_io)
{
	return end_io == symbols.dio_bio_end_io || end_io == symbols.dio_bio_end_aio;
}

/* Finds the inode of a direct IO's bio, and the dentry if the filesystem has it. */
static __always_inline bool find_direct(struct ascent *a, struct run *run)
{
	const struct bio_view *root = &a->root;
	struct window *w = &a->window;
	struct dio *dio;

	if (!root->end_io)
		return false;
	if ((!a->has_plain && a->direct.file) || is_iomap(root)) {
		if (a->has_plain || !a->direct.file)
			see_direct(w, &a->direct, root);
		run->inode = a->direct.inode;
		run->dentry = a->direct.dentry;
		return true;
	}
	if (bpf_core_type_exists(struct dio) && is_dio(root->end_io)) {
		dio = root->private;
		run->inode = BPF_CORE_READ(dio, inode);
		return true;
	}
	if (root->end_io == symbols.f2fs_dio_end_io) {
		/* struct f2fs_private_dio begins with the inode. */
		bpf_probe_read_kernel(&run->inode, sizeof(run->inode), root->private);
		return true;
	}
	return false;
}

#define NOT_DIRECT -1

/* Makes the file entry of direct IO. Returns its origin, or NOT_DIRECT. */
static __always_inline int direct_owner(struct work *w, __u32 slot)
{
	struct run run = {
		.offset = w->who.direct_pos,
		.sector = w->process.head.sector,
		.bytes = w->process.head.bytes,
		.origin = MOSTRACE_ORIGIN_DIRECT,
	};

	if (!find_direct(&w->ascent, &run))
		return NOT_DIRECT;
	if (!run.inode)
		return MOSTRACE_ORIGIN_UNKNOWN;
	if (is_bdev(run.inode))
		return MOSTRACE_ORIGIN_RAW;
	put_run(w, slot, &run);
	return MOSTRACE_ORIGIN_DIRECT;
}

/* Returns true if the buffer of direct IO is a process's memory: anonymous, or a file of another device. */
static __always_inline bool is_users_memory(struct window *w, const struct bio_view *root)
{
	struct bio_device device;
	struct folio_view folio;
	struct inode *inode;

	view_folio(&folio, first_page(root));
	inode = mapping_inode(folio.mapping);
	if (!inode)
		return folio.mapping != 0;
	find_device(w, &device, root);
	return !is_bdev(inode) && device.dev && LOAD(inode, i_sb, s_dev) != device.dev;
}

/* Returns true for direct IO of a block device; its short, synchronous form uses submit_bio_wait. */
static __always_inline bool is_raw_direct(struct window *w, const struct bio_view *root)
{
	__u64 end_io = root->end_io;

	if (!end_io)
		return false;
	if (end_io == symbols.blkdev_bio_end_io || end_io == symbols.blkdev_bio_end_io_simple ||
	    end_io == symbols.blkdev_bio_end_io_async)
		return true;
	return (end_io == symbols.submit_bio_wait_endio || end_io == symbols.bio_wait_end_io) &&
	       is_users_memory(w, root);
}

#endif
