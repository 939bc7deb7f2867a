/* SPDX-License-Identifier: GPL-2.0-only */
/* Recognises the kind of an ext4 metadata block by its bytes. */
#ifndef MOSTRACE_CONTENTS_BPF_H
#define MOSTRACE_CONTENTS_BPF_H

#include "work.bpf.h"

#define EXT4_EXT_MAGIC 0xf30a
#define EXT4_XATTR_MAGIC 0xea020000U
#define EXT4_BLOCK_MIN 1024
#define EXT4_BLOCK_MAX 65536

/* The beginnings of these blocks, as in fs/ext4; all fields are little-endian. */
union ext4_block {
	__u32 words[3];
	struct {
		__u16 eh_magic;
		__u16 eh_entries;
		__u16 eh_max;
		__u16 eh_depth;
	} extents;
	struct {
		__u32 h_magic;
		__u32 h_refcount;
		__u32 h_blocks;
	} xattr;
	struct {
		__u32 inode;
		__u16 rec_len;
		__u8 name_len;
		__u8 file_type;
		__u32 name;
	} entry;
};

static __always_inline bool is_extents(const union ext4_block *b, __u32 size)
{
	/* The rest of the block is a checksum, or less than an extent. */
	__u32 room = (size - 12) / 12;

	return b->extents.eh_magic == EXT4_EXT_MAGIC && b->extents.eh_entries <= b->extents.eh_max &&
	       b->extents.eh_max <= room && b->extents.eh_depth <= 5;
}

static __always_inline bool is_xattrs(const union ext4_block *b)
{
	return b->xattr.h_magic == EXT4_XATTR_MAGIC && b->xattr.h_blocks == 1;
}

/* Recognises the first block of a directory, which begins with "."; or a node of its index, within an unused entry. */
static __always_inline bool begins_directory(const union ext4_block *b, __u32 size)
{
	if (b->entry.inode)
		return b->entry.rec_len == 12 && b->entry.name_len == 1 && b->entry.name == '.';
	return b->entry.rec_len == (__u16)size && !b->entry.name_len && !b->entry.file_type;
}

/* Recognises the tail with the checksum of a block of entries, within an unused entry. */
static __always_inline bool ends_directory(const union ext4_block *tail)
{
	return !tail->entry.inode && tail->entry.rec_len == 12 && !tail->entry.name_len &&
	       tail->entry.file_type == 0xde;
}

/* A buffer that is being written is in memory, so this can be read. */
static __always_inline void peek_block(union ext4_block *b, const char *at)
{
	if (!HAS_TYPES) {
		bpf_probe_read_kernel(b, sizeof(*b), at);
		return;
	}
	b->words[0] = PEEK_AT(__u32, at);
	b->words[1] = PEEK_AT(__u32, at + 4);
	b->words[2] = PEEK_AT(__u32, at + 8);
}

static __noinline __u8 contents_of(struct buffer_head *bh)
{
	char *data = LOAD(bh, b_data);
	__u32 size = LOAD(bh, b_size);
	union ext4_block begin, end;

	if (size < EXT4_BLOCK_MIN || size > EXT4_BLOCK_MAX || !data)
		return MOSTRACE_CONTENTS_UNKNOWN;
	peek_block(&begin, data);
	peek_block(&end, data + size - sizeof(end));
	if (is_extents(&begin, size))
		return MOSTRACE_CONTENTS_EXTENTS;
	if (is_xattrs(&begin))
		return MOSTRACE_CONTENTS_XATTR;
	if (begins_directory(&begin, size) || ends_directory(&end))
		return MOSTRACE_CONTENTS_DIRECTORY;
	return MOSTRACE_CONTENTS_OTHER;
}

/* Sets the contents of a write of one buffer. */
static __always_inline void find_contents(struct work *w, struct buffer_head *bh)
{
	if ((w->process.opf & REQ_OP_MASK) == REQ_OP_WRITE)
		w->process.contents = contents_of(bh);
}

#endif
