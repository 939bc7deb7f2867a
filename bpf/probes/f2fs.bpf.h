/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * f2fs keeps its own blocks in the page cache of two inodes: nodes by their number, the checkpoint and the tables by
 * their block address. A node block names its owner in its footer.
 */
#ifndef MOSTRACE_F2FS_BPF_H
#define MOSTRACE_F2FS_BPF_H

#include "file.bpf.h"

#define F2FS_SUPER_MAGIC 0xf2f52010U
/* node_ino and meta_ino in the superblock, as mkfs.f2fs writes them. */
#define F2FS_NODE_INO 1
#define F2FS_META_INO 2

/* Offset of i_generation in struct f2fs_inode. */
#define F2FS_INODE_GENERATION 68
/* struct node_footer in <linux/f2fs_fs.h>, little-endian. */
struct node_footer {
	__u32 nid;
	__u32 ino;
	__u32 flag;
	__u32 cp_ver[2];
	__u32 next_blkaddr;
};

enum {
	F2FS_COLD_BIT = 1,	/* not a directory's */
	F2FS_FSYNC_BIT = 2,
	F2FS_OFFSET_SHIFT = 3,	/* bits from here on: the node's offset in its file's tree */
};

/* Returns the number of the inode if its pages are not a file's contents, otherwise 0. */
static __always_inline __u64 f2fs_own_inode(struct inode *inode)
{
	__u64 ino;

	if (inode_magic(inode) != F2FS_SUPER_MAGIC)
		return 0;
	ino = inode_ino(inode);
	return ino == F2FS_NODE_INO || ino == F2FS_META_INO ? ino : 0;
}

/* NIDS_PER_BLOCK in <linux/f2fs_fs.h>: a block, which is as large as a page, without its footer. */
static __always_inline __u32 nids_per_block(void)
{
	return ((1U << page_shift) - sizeof(struct node_footer)) / sizeof(__u32);
}

/* Returns true if the node at this offset of a tree points to data: IS_DNODE in fs/f2fs/node.h. */
static __always_inline bool is_direct_node(__u32 place)
{
	const __u32 nids = nids_per_block();
	const __u32 first = 6 + 2 * nids;

	if (place == ~0U >> F2FS_OFFSET_SHIFT)
		return true;	/* extended attributes */
	if (place == 3 || place == 4 + nids || place == 5 + 2 * nids)
		return false;
	return place < first || (place - first) % (nids + 1);
}

static __always_inline __u8 what_node(__u32 flag)
{
	if (!is_direct_node(flag >> F2FS_OFFSET_SHIFT))
		return MOSTRACE_WHAT_COLD_NODE;
	if (!(flag & F2FS_COLD_BIT))
		return MOSTRACE_WHAT_HOT_NODE;
	return flag & F2FS_FSYNC_BIT ? MOSTRACE_WHAT_FSYNC_NODE : MOSTRACE_WHAT_WARM_NODE;
}

/* Fills in what the block's footer holds. */
static __always_inline void read_node(struct mostrace_file *f, const char *block, __u64 nid)
{
	struct node_footer footer;

	if (!block ||
	    bpf_probe_read_kernel(&footer, sizeof(footer),
				  block + (1UL << page_shift) - sizeof(footer)) ||
	    footer.nid != nid)
		return;
	f->ino = footer.ino;
	f->what = what_node(footer.flag);
	/* The block is the inode itself. */
	if (footer.nid == footer.ino &&
	    !bpf_probe_read_kernel(&f->generation, sizeof(f->generation),
				   block + F2FS_INODE_GENERATION))
		f->head.flags = 0;
}

/* Makes the entry of a node page, a page of f2fs's node inode. */
static __always_inline void put_node(struct work *w, struct inode *inode, __u64 page, __u64 nid)
{
	struct mostrace_file *f = (struct mostrace_file *)room(w);

	put_head(&f->head, w, MOSTRACE_FILE, sizeof(*f), w->walk.sector, 1U << page_shift);
	f->head.flags = MOSTRACE_NO_GENERATION;
	f->ino = 0;
	f->offset = nid << page_shift;
	f->parent = 0;
	f->generation = 0;
	f->s_dev = BPF_CORE_READ(inode, i_sb, s_dev);
	f->nlink = 0;
	f->name_len = 0;
	f->origin = MOSTRACE_ORIGIN_NODE;
	f->what = MOSTRACE_WHAT_NODE;
	read_node(f, page_address(page, BPF_CORE_READ(inode, i_sb, s_bdev)), nid);
	w->used += sizeof(*f);
}

#endif
