// SPDX-License-Identifier: GPL-2.0-only
/*
 * f2fs keeps its metadata in two inodes of its own. The footer of each page of the node inode
 * identifies the file that the node belongs to.
 */
#include <linux/kernel.h>
#include <linux/magic.h>
#include "compat.h"
#include "f2fs.h"
#include "ring.h"

/* f2fs's node_ino and meta_ino, as mkfs.f2fs writes them. */
#define F2FS_NODE_INO 1
#define F2FS_META_INO 2
/* Offset of i_generation in struct f2fs_inode. */
#define F2FS_INODE_GENERATION 68
/* struct node_footer of <linux/f2fs_fs.h>: the last bytes of a node, which describe it. */
struct footer {
	__le32 nid;
	__le32 ino;
	__le32 flag;
	__le32 cp_ver[2];
	__le32 next_blkaddr;
};

/* NIDS_PER_BLOCK of <linux/f2fs_fs.h>: a block is as large as a page. */
#define F2FS_NIDS_PER_BLOCK ((PAGE_SIZE - sizeof(struct footer)) / sizeof(__le32))

enum {
	F2FS_COLD_BIT = 1,	/* not a directory's */
	F2FS_FSYNC_BIT = 2,
	F2FS_OFFSET_SHIFT = 3,	/* the bits from here on: the node's place in the tree of its
				 * file */
};

/* Returns the origin of the pages of f2fs's own two inodes; 0 for any other inode. */
u8 mostrace_f2fs_origin(const struct inode *inode)
{
	if (inode->i_sb->s_magic != F2FS_SUPER_MAGIC)
		return 0;
	switch (inode->i_ino) {
	case F2FS_NODE_INO:
		return MOSTRACE_ORIGIN_NODE;
	case F2FS_META_INO:
		return MOSTRACE_ORIGIN_META;
	default:
		return 0;
	}
}

/* Returns true if the node at this place of a tree points to data: IS_DNODE of fs/f2fs/node.h. */
static bool is_direct_node(u32 place)
{
	const u32 first = 6 + 2 * F2FS_NIDS_PER_BLOCK;

	if (place == U32_MAX >> F2FS_OFFSET_SHIFT)
		return true;	/* extended attributes */
	if (place == 3 || place == 4 + F2FS_NIDS_PER_BLOCK ||
	    place == 5 + 2 * F2FS_NIDS_PER_BLOCK)
		return false;
	return place < first || (place - first) % (F2FS_NIDS_PER_BLOCK + 1);
}

static u8 what_node(u32 flag)
{
	if (!is_direct_node(flag >> F2FS_OFFSET_SHIFT))
		return MOSTRACE_WHAT_COLD_NODE;
	if (!(flag & F2FS_COLD_BIT))
		return MOSTRACE_WHAT_HOT_NODE;
	return flag & F2FS_FSYNC_BIT ? MOSTRACE_WHAT_FSYNC_NODE : MOSTRACE_WHAT_WARM_NODE;
}

static void read_node(struct mostrace_file *file, struct page *page, u64 nid)
{
	char *block = mostrace_map_page(page);
	struct footer footer;
	__le32 generation;

	if (mostrace_peek(&footer, (struct footer *)(block + PAGE_SIZE - sizeof(footer))) &&
	    le32_to_cpu(footer.nid) == nid) {
		file->ino = le32_to_cpu(footer.ino);
		file->what = what_node(le32_to_cpu(footer.flag));
		/* In this case the block is the inode itself. */
		if (footer.nid == footer.ino &&
		    mostrace_peek(&generation, (__le32 *)(block + F2FS_INODE_GENERATION))) {
			file->generation = le32_to_cpu(generation);
			file->head.flags &= ~MOSTRACE_NO_GENERATION;
		}
	}
	mostrace_unmap_page(block);
}

void mostrace_put_node(const struct mostrace_making *m, struct page *page,
		       const struct mostrace_place *place, u64 sector)
{
	struct mostrace_file file = {
		.head = mostrace_head_of(m),
		.offset = round_down(place->offset, PAGE_SIZE),
		.s_dev = place->inode->i_sb->s_dev,
		.origin = MOSTRACE_ORIGIN_NODE,
		.what = MOSTRACE_WHAT_NODE,
	};

	file.head.type = MOSTRACE_FILE;
	file.head.size = sizeof(file);
	file.head.sector = sector;
	file.head.bytes = PAGE_SIZE;
	file.head.flags = MOSTRACE_NO_GENERATION;
	read_node(&file, page, place->offset >> PAGE_SHIFT);
	mostrace_put(&file.head);
}
