// SPDX-License-Identifier: GPL-2.0-only
/* Recognises the kind of an ext4 metadata block by its bytes. */
#include <linux/buffer_head.h>
#include <linux/kernel.h>
#include "compat.h"
#include "contents.h"
#include "mostrace.h"

#define EXT4_EXT_MAGIC 0xf30a
#define EXT4_XATTR_MAGIC 0xea020000
#define EXT4_BLOCK_MIN 1024

/* The beginnings of these blocks, as in fs/ext4. */
union block {
	struct {
		__le16 eh_magic;
		__le16 eh_entries;
		__le16 eh_max;
		__le16 eh_depth;
	} extents;
	struct {
		__le32 h_magic;
		__le32 h_refcount;
		__le32 h_blocks;
	} xattr;
	struct {
		__le32 inode;
		__le16 rec_len;
		u8 name_len;
		u8 file_type;
		char name[4];
	} entry;
};

static bool is_extents(const union block *b, size_t size)
{
	u16 entries = le16_to_cpu(b->extents.eh_entries), max = le16_to_cpu(b->extents.eh_max);

	/* The rest of the block is a checksum, or less than an extent. */
	return b->extents.eh_magic == cpu_to_le16(EXT4_EXT_MAGIC) && entries <= max &&
	       max <= (size - 12) / 12 && le16_to_cpu(b->extents.eh_depth) <= 5;
}

static bool is_xattrs(const union block *b)
{
	return b->xattr.h_magic == cpu_to_le32(EXT4_XATTR_MAGIC) &&
	       b->xattr.h_blocks == cpu_to_le32(1);
}

/*
 * Recognises the first block of a directory, which begins with "."; or a node of its index, within
 * an unused entry.
 */
static bool begins_directory(const union block *b, size_t size)
{
	u16 rec_len = le16_to_cpu(b->entry.rec_len);

	if (b->entry.inode)
		return rec_len == 12 && b->entry.name_len == 1 && b->entry.name[0] == '.' &&
		       !b->entry.name[1];
	return rec_len == (u16)size && !b->entry.name_len && !b->entry.file_type;
}

/* Recognises the tail with the checksum of a block of entries, within an unused entry. */
static bool ends_directory(const union block *tail)
{
	return !tail->entry.inode && tail->entry.rec_len == cpu_to_le16(12) &&
	       !tail->entry.name_len && tail->entry.file_type == 0xde;
}

u8 mostrace_contents_of(const struct buffer_head *bh)
{
	const char *end_at = bh->b_data + bh->b_size - sizeof(union block);
	union block begin, end;

	if (bh->b_size < EXT4_BLOCK_MIN || !mostrace_peek(&begin, (union block *)bh->b_data) ||
	    !mostrace_peek(&end, (union block *)end_at))
		return MOSTRACE_CONTENTS_UNKNOWN;
	if (is_extents(&begin, bh->b_size))
		return MOSTRACE_CONTENTS_EXTENTS;
	if (is_xattrs(&begin))
		return MOSTRACE_CONTENTS_XATTR;
	if (begins_directory(&begin, bh->b_size) || ends_directory(&end))
		return MOSTRACE_CONTENTS_DIRECTORY;
	return MOSTRACE_CONTENTS_OTHER;
}
