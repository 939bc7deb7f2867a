// SPDX-License-Identifier: GPL-2.0-only
/* Makes the file entries. */
#include <linux/kernel.h>
#include <linux/magic.h>
#include <linux/rcupdate.h>
#include <linux/seqlock.h>
#include <linux/string.h>
#include "compat.h"
#include "file.h"
#include "names.h"
#include "ring.h"

/* A file entry with room for the longest name. */
union file_record {
	struct mostrace_file file;
	char bytes[sizeof(struct mostrace_file) + MOSTRACE_NAME_MAX + 8];
};

static u8 what_of(const struct inode *inode)
{
	switch (inode->i_mode & S_IFMT) {
	case S_IFREG:
		return MOSTRACE_WHAT_REGULAR;
	case S_IFDIR:
		return MOSTRACE_WHAT_DIRECTORY;
	case S_IFLNK:
		return MOSTRACE_WHAT_SYMLINK;
	default:
		return MOSTRACE_WHAT_UNKNOWN;
	}
}

/* Copies the name; false if it cannot be read. */
static bool copy_name(struct dentry *dentry, union file_record *r)
{
	u32 len = READ_ONCE(dentry->d_name.len);
	const unsigned char *name = READ_ONCE(dentry->d_name.name);
	char *to = r->bytes + sizeof(r->file);

	if (len >= MOSTRACE_NAME_MAX)
		len = MOSTRACE_NAME_MAX - 1;
	if (copy_from_kernel_nofault(to, name, len))
		return false;
	/* glob_match needs a NUL at the end, and the entry is padded to a multiple of 8. */
	memset(to + len, 0, 8);
	r->file.name_len = len;
	if (READ_ONCE(dentry->d_name.len) != len)
		r->file.head.flags |= MOSTRACE_NAME_CUT;
	return true;
}

static void copy_parent(struct dentry *dentry, union file_record *r)
{
	struct dentry *parent = READ_ONCE(dentry->d_parent);
	struct inode *inode;

	/* A root is its own parent. */
	if (parent == dentry)
		return;
	inode = READ_ONCE(parent->d_inode);
	if (inode)
		r->file.parent = inode->i_ino;
}

#define TRIES 3

/*
 * Copies the name unless it is just being changed. The code that this interrupt interrupted may be
 * the one that changes it, so neither its lock nor the end of the change can be waited for.
 * Dentries and their long names are freed by RCU.
 */
static void name_file(union file_record *r, struct inode *inode, struct dentry *dentry)
{
	seqcount_t *seq = mostrace_d_seq(dentry);
	unsigned int begin;
	int i;

	for (i = 0; i < TRIES; i++) {
		begin = raw_seqcount_begin(seq);
		if (READ_ONCE(dentry->d_inode) == inode && copy_name(dentry, r)) {
			copy_parent(dentry, r);
			if (!read_seqcount_retry(seq, begin))
				return;
		}
		r->file.name_len = 0;
		r->file.parent = 0;
		r->file.head.flags &= ~MOSTRACE_NAME_CUT;
	}
}

/* Shortens the record to its name or, if the file was not asked for, removes the name. */
static void cut_to_name(union file_record *r)
{
	if (!mostrace_name_wanted(r->bytes + sizeof(r->file), r->file.name_len)) {
		r->file.name_len = 0;
		r->file.head.flags |= MOSTRACE_NAME_WITHHELD;
	}
	r->file.head.size = ALIGN(sizeof(r->file) + r->file.name_len, 8);
}

static void describe(struct mostrace_file *file, const struct inode *inode)
{
	file->what = what_of(inode);
	file->ino = inode->i_ino;
	/* i_pos, which identifies a file of FAT, is in a structure of its own. */
	if (inode->i_sb->s_magic == MSDOS_SUPER_MAGIC)
		file->head.flags |= MOSTRACE_INO_PASSING;
	file->generation = inode->i_generation;
	file->s_dev = inode->i_sb->s_dev;
	file->nlink = inode->i_nlink;
	if (!file->nlink)
		file->head.flags |= MOSTRACE_UNLINKED;
	else if (file->nlink > 1)
		file->head.flags |= MOSTRACE_HARDLINKED;
}

/*
 * Returns the dentry that provides the inode's name; an overlay's dentry belongs to another inode.
 */
static struct dentry *dentry_of(const struct mostrace_run *run)
{
	if (run->dentry && READ_ONCE(run->dentry->d_inode) == run->inode)
		return run->dentry;
	return mostrace_alias(run->inode);
}

void mostrace_put_run(const struct mostrace_making *m, const struct mostrace_run *run)
{
	struct dentry *dentry = dentry_of(run);
	union file_record r;

	/* The room for the name is not cleared. */
	r.file = (struct mostrace_file){
		.head = mostrace_head_of(m),
		.offset = run->offset,
		.origin = run->origin,
	};
	r.file.head.type = MOSTRACE_FILE;
	r.file.head.size = sizeof(r.file);
	r.file.head.sector = run->sector;
	r.file.head.bytes = run->bytes;
	describe(&r.file, run->inode);
	if (dentry)
		name_file(&r, run->inode, dentry);
	if (r.file.name_len)
		cut_to_name(&r);
	mostrace_put(&r.file.head);
}
