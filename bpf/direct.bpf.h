/* SPDX-License-Identifier: GPL-2.0-only */
/* Direct IO: the pages are the caller's, the file is found through the bio's owner. */
#ifndef MOSTRACE_DIRECT_BPF_H
#define MOSTRACE_DIRECT_BPF_H

#include "pages.bpf.h"

/* fs/direct-io.c: what blockdev_direct_IO (vfat) puts into bi_private. */
static __always_inline bool is_dio(__u64 end_io)
{
	return end_io == symbols.dio_bio_end_io || end_io == symbols.dio_bio_end_aio;
}

/* The inode that a bio does direct IO of, and where the filesystem keeps it, the dentry. */
static __always_inline bool find_direct(struct bio *root, struct run *run)
{
	__u64 end_io = (__u64)BPF_CORE_READ(root, bi_end_io);
	void *private = BPF_CORE_READ(root, bi_private);

	if (!end_io)
		return false;
	if (bpf_core_type_exists(struct iomap_dio) && is_file_direct(root)) {
		struct file *file = BPF_CORE_READ(iomap_dio_of(root), iocb, ki_filp);

		run->inode = BPF_CORE_READ(file, f_inode);
		run->dentry = BPF_CORE_READ(file, f_path.dentry);
		return true;
	}
	if (bpf_core_type_exists(struct dio) && is_dio(end_io)) {
		run->inode = BPF_CORE_READ((struct dio *)private, inode);
		return true;
	}
	if (end_io == symbols.f2fs_dio_end_io) {
		/* struct f2fs_private_dio begins with the inode. */
		bpf_probe_read_kernel(&run->inode, sizeof(run->inode), private);
		return true;
	}
	return false;
}

#define NOT_DIRECT -1

/*
 * Makes the file entry of direct IO; returns its origin, or NOT_DIRECT. Not static, so that its
 * stack does not count where it is not called: see remember_current.
 */
__noinline int direct_owner(__u64 root_at, __u64 offset, __u64 sector, __u32 bytes, __u32 stage)
{
	struct run run = {
		.offset = offset,
		.sector = sector,
		.bytes = bytes,
		.origin = MOSTRACE_ORIGIN_DIRECT,
	};

	if (!find_direct((struct bio *)root_at, &run))
		return NOT_DIRECT;
	if (!run.inode)
		return MOSTRACE_ORIGIN_UNKNOWN;
	if (is_bdev(run.inode))
		return MOSTRACE_ORIGIN_RAW;
	put_run(&run, stage);
	return MOSTRACE_ORIGIN_DIRECT;
}

/* Place in the file of a direct bio that begins at `sector`. */
static __always_inline __u64 direct_offset(const struct submitter *s, __u64 sector)
{
	if (!s || s->direct_pos == MOSTRACE_NONE)
		return MOSTRACE_NONE;
	return s->direct_pos + ((sector - s->sector) << 9);
}

/* A process's memory as the buffer of direct IO: anonymous, or a file of another device. */
static __always_inline bool is_users_memory(struct bio *bio)
{
	struct page *head = page_head(bio_first_page(bio));
	struct inode *inode = page_inode(head);

	if (!inode)
		return page_mapping(head) != 0;
	return !is_bdev(inode) && bio_dev(bio) && BPF_CORE_READ(inode, i_sb, s_dev) != bio_dev(bio);
}

/* Direct IO of a block device; its short, synchronous form goes through submit_bio_wait. */
static __always_inline bool is_raw_direct(struct bio *bio, struct bio *root)
{
	__u64 end_io = (__u64)BPF_CORE_READ(root, bi_end_io);

	if (!end_io)
		return false;
	if (end_io == symbols.blkdev_bio_end_io || end_io == symbols.blkdev_bio_end_io_simple ||
	    end_io == symbols.blkdev_bio_end_io_async)
		return true;
	return (end_io == symbols.submit_bio_wait_endio || end_io == symbols.bio_wait_end_io) &&
	       is_users_memory(bio);
}

#endif
