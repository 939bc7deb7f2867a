/* SPDX-License-Identifier: GPL-2.0-only */
/* Inodes, and the file entries made of them. */
#ifndef MOSTRACE_FILE_BPF_H
#define MOSTRACE_FILE_BPF_H

#include "work.bpf.h"

/* The inode behind a mapping of the page cache, or NULL if it is not one. */
static __always_inline struct inode *mapping_inode(__u64 mapping)
{
	struct inode *host;

	/* Low bits mark anonymous and movable pages; tails and slabs hold other things. */
	if (!mapping || (mapping & 7))
		return 0;
	host = BPF_CORE_READ((struct address_space *)mapping, host);
	if (!host || ((__u64)host & 7))
		return 0;
	if ((__u64)LOAD(host, i_mapping) != mapping &&
	    (__u64)host + bpf_core_field_offset(struct inode, i_data) != mapping)
		return 0;
	return host;
}

static __always_inline bool is_bdev(struct inode *inode)
{
	return (LOAD(inode, i_mode) & S_IFMT) == S_IFBLK;
}

static __always_inline __u32 inode_magic(struct inode *inode)
{
	return LOAD(inode, i_sb, s_magic);
}

/*
 * What names the file on its filesystem. FAT keeps no inode numbers: i_pos, the place of the
 * directory entry, is the nearest to one.
 */
static __always_inline __u64 file_number(struct inode *inode, __u32 magic)
{
	struct msdos_inode_info *info;

	if (magic != MSDOS_SUPER_MAGIC || !bpf_core_type_exists(struct msdos_inode_info))
		return inode_ino(inode);
	info = (void *)((char *)inode - bpf_core_field_offset(struct msdos_inode_info, vfs_inode));
	return BPF_CORE_READ(info, i_pos);
}

/* Whether file_number gives a number that the filesystem does not keep. */
static __always_inline bool is_number_passing(__u32 magic)
{
	return magic == MSDOS_SUPER_MAGIC && !bpf_core_type_exists(struct msdos_inode_info);
}

static __always_inline __u8 what_of(__u16 mode)
{
	switch (mode & S_IFMT) {
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

/* An odd number while the name is changed. Behind a call of a helper it is read anew. */
static __always_inline __u32 seq_of(struct dentry *dentry)
{
	return LOAD(dentry, d_seq.seqcount.sequence);
}

/*
 * Puts the name behind the entry. A rename may come in between: the name counts only if d_seq says that
 * none did. Returns its length, 0 if it is not known.
 */
static __always_inline __u32 name_file(struct window *w, struct mostrace_file *f, char *name,
				       struct dentry *dentry, __u32 magic)
{
	struct dentry *parent;
	__u32 seq, len;

	OPEN(w, struct dentry, dentry);
	seq = SEE(w, struct dentry, d_seq.seqcount.sequence);
	parent = SEE(w, struct dentry, d_parent);
	len = SEE(w, struct dentry, d_name.len);
	if (seq & 1)
		return 0;
	if (len >= MOSTRACE_NAME_MAX) {
		len = MOSTRACE_NAME_MAX - 1;
		f->head.flags |= MOSTRACE_NAME_CUT;
	}
	len &= MOSTRACE_NAME_MAX - 1;
	if (!len)
		return 0;
	/* NULs up to a multiple of 8. */
	*(__u64 *)(name + ((len - 1) & (MOSTRACE_NAME_MAX - 8))) = 0;
	if (bpf_probe_read_kernel(name, len, SEE(w, struct dentry, d_name.name)) ||
	    seq_of(dentry) != seq) {
		f->head.flags &= ~MOSTRACE_NAME_CUT;
		return 0;
	}
	/* A root is its own parent. */
	if (parent && parent != dentry) {
		OPEN(w, struct dentry, parent);
		f->parent = file_number(SEE(w, struct dentry, d_inode), magic);
	}
	return len;
}

/*
 * Puts the next folder's name behind those before, and a slash behind it. Not static, so that the verifier
 * walks it once. Returns whether to go on.
 */
__noinline int climb(__u32 slot)
{
	struct work *w = work_of(slot);
	struct dentry *dentry;
	struct window *v;
	__u32 seq, len, at, depth;
	char *name;

	if (!w)
		return 0;
	dentry = w->climb.dentry;
	depth = w->climb.depth & (DEPTH_MAX - 1);
	at = w->climb.len & (MOSTRACE_NAME_MAX - 1);
	v = &w->ascent.window;
	if (dentry == w->climb.root) {
		w->climb.whole = true;
		return 0;
	}
	OPEN(v, struct dentry, dentry);
	/* First, since what it guards may be loaded one by one. */
	seq = SEE(v, struct dentry, d_seq.seqcount.sequence);
	len = SEE(v, struct dentry, d_name.len);
	w->climb.dentry = SEE(v, struct dentry, d_parent);
	/* A root that is none: it is no part of the tree. */
	if (!len || w->climb.dentry == dentry || at + len + 1 >= MOSTRACE_NAME_MAX)
		return 0;
	len &= MOSTRACE_NAME_MAX - 1;
	name = room(w) + sizeof(struct mostrace_file) + at;
	if (bpf_probe_read_kernel(name, len, SEE(v, struct dentry, d_name.name)))
		return 0;
	name[len] = '/';
	w->climb.seen[depth].dentry = dentry;
	w->climb.seen[depth].seq = seq;
	w->climb.depth = depth + 1;
	w->climb.len = at + len + 1;
	return 1;
}

/* Whether none of the names was changed or moved since it was read: then they were a path. */
__noinline int is_path(__u32 slot)
{
	struct work *w = work_of(slot);

	if (!w)
		return 0;
	for (__u32 i = 0; i < DEPTH_MAX; i++) {
		__u32 seq = w->climb.seen[i].seq;

		if (i >= w->climb.depth)
			break;
		if ((seq & 1) || seq_of(w->climb.seen[i].dentry) != seq)
			return 0;
	}
	return 1;
}

/*
 * The names of the folders above `dentry`, whose own name of `len` bytes is there already, each with a slash
 * ahead of it; behind the last one, under the root, one more. Returns the length of all; `len` if something was
 * moved meanwhile, or the way is too long.
 */
static __always_inline __u32 climb_up(struct work *w, __u32 slot, struct dentry *dentry,
				      struct super_block *sb, __u32 len)
{
	len &= MOSTRACE_NAME_MAX - 1;
	w->climb.root = LOAD(sb, s_root);
	if (!len || len + 1 >= MOSTRACE_NAME_MAX || dentry == w->climb.root)
		return len;
	w->climb.whole = false;
	w->climb.seen[0].dentry = dentry;
	w->climb.seen[0].seq = seq_of(dentry);
	w->climb.dentry = LOAD(dentry, d_parent);
	w->climb.depth = 1;
	w->climb.len = len + 1;
	*(room(w) + sizeof(struct mostrace_file) + len) = '/';
	for (int i = 1; i < DEPTH_MAX && climb(slot); i++)
		;
	return w->climb.whole && is_path(slot) ? w->climb.len & (MOSTRACE_NAME_MAX - 1) : len;
}

#define NAME_TRIES 3

/* Makes a file entry of the run in hand. Not static, so that the verifier walks it once. */
__noinline int put_file(__u32 slot)
{
	struct work *w = work_of(slot);
	struct dentry *dentry;
	struct mostrace_file *f;
	struct super_block *sb;
	struct inode *inode;
	struct window *i;
	__u32 magic, len = 0;
	char *at;

	if (!w)
		return 0;
	at = room(w);
	f = (struct mostrace_file *)at;
	inode = w->run.inode;
	i = &w->inode;
	OPEN(i, struct inode, inode);
	sb = SEE(i, struct inode, i_sb);
	magic = LOAD(sb, s_magic);
	put_head(&f->head, w, MOSTRACE_FILE, sizeof(*f), w->run.sector, w->run.bytes);
	f->ino = file_number(inode, magic);
	if (is_number_passing(magic))
		f->head.flags |= MOSTRACE_INO_PASSING;
	f->offset = w->run.offset;
	f->parent = 0;
	f->generation = SEE(i, struct inode, i_generation);
	f->s_dev = LOAD(sb, s_dev);
	f->nlink = SEE(i, struct inode, i_nlink);
	if (!f->nlink)
		f->head.flags |= MOSTRACE_UNLINKED;
	else if (f->nlink > 1)
		f->head.flags |= MOSTRACE_HARDLINKED;
	f->origin = w->run.origin;
	f->what = what_of(SEE(i, struct inode, i_mode));
	dentry = w->run.dentry;
	if (!dentry)
		dentry = inode_dentry(inode);
	for (int try = 0; dentry && !len && try < NAME_TRIES; try++)
		len = name_file(&w->ascent.window, f, at + sizeof(*f), dentry, magic);
	if (dentry && len)
		len = climb_up(w, slot, dentry, sb, len);
	f->name_len = len;
	f->head.size += (len + 7) & (2 * MOSTRACE_NAME_MAX - 8);
	w->used += f->head.size;
	return 0;
}

static __always_inline void put_run(struct work *w, __u32 slot, const struct run *run)
{
	w->run = *run;
	put_file(slot);
}

#endif
