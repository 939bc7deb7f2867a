/* SPDX-License-Identifier: GPL-2.0-only */
/* Inodes, and the file entries made from them. */
#ifndef MOSTRACE_FILE_BPF_H
#define MOSTRACE_FILE_BPF_H

#include "number.bpf.h"
#include "work.bpf.h"

/* Returns the inode behind a mapping of the page cache, or NULL if it is not one. */
static __always_inline struct inode *mapping_inode(__u64 mapping)
{
	struct inode *host;

	/* The low bits mark anonymous and movable pages; tail pages and slabs hold other values here. */
	if (!mapping || (mapping & 7))
		return 0;
	host = LOAD((struct address_space *)mapping, host);
	if (!host)
		return 0;
	if ((__u64)LOAD(host, i_mapping) != mapping &&
	    (__u64)host + bpf_core_field_offset(struct inode, i_data) != mapping)
		return 0;
	return host;
}

/* Returns true if a program has a shared mapping of the inode's pages that it may write to, or may be allowed to. */
static __always_inline bool is_mapped_writable(struct inode *inode)
{
	return inode && LOAD(inode, i_mapping, i_mmap_writable.counter) > 0;
}

static __always_inline bool is_bdev(struct inode *inode)
{
	return (LOAD(inode, i_mode) & S_IFMT) == S_IFBLK;
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

/* Reads a dentry, and keeps in `s` what is needed to check later whether it is unchanged. */
static __always_inline void see_name(struct window *w, struct seen_name *s, struct dentry *dentry)
{
	OPEN(w, struct dentry, dentry);
	s->dentry = dentry;
	/* This is read first, because fields may be loaded one by one. It is odd while the name is changed. */
	s->seq = SEE(w, struct dentry, d_seq.seqcount.sequence);
	s->parent = SEE(w, struct dentry, d_parent);
	s->hash_len = SEE(w, struct dentry, d_name.hash_len);
}

/* Reads the sequence number again: the compiler must not reuse a value from before a helper's call. */
static __always_inline __u32 seq_of(struct dentry *dentry)
{
	return LOAD(dentry, d_seq.seqcount.sequence);
}

/*
 * Returns true if the dentry is unchanged. The memory may have been reused for another dentry, so the other fields
 * are compared too.
 */
static __always_inline bool is_as_seen(const struct seen_name *s)
{
	struct dentry *dentry = s->dentry;

	return !(s->seq & 1) && seq_of(dentry) == s->seq && LOAD(dentry, d_parent) == s->parent &&
	       LOAD(dentry, d_name.hash_len) == s->hash_len;
}

static __always_inline struct path_name *path_in_hand(struct work *w)
{
	return &w->paths[w->path & (PATHS - 1)];
}

/* Returns true if all names of the current path are unchanged. Not static, so that the verifier walks it once. */
__noinline int is_path(__u32 slot)
{
	struct work *w = work_of(slot);
	struct path_name *p;

	if (!w)
		return 0;
	p = path_in_hand(w);
	for (__u32 i = 0; i < DEPTH_MAX; i++) {
		if (i >= p->depth)
			break;
		if (!is_as_seen(&p->seen[i]))
			return 0;
	}
	return 1;
}

/*
 * Begins the current path with the dentry's own name. A rename may happen meanwhile: the name is valid only if d_seq is
 * unchanged. Returns its length, or 0 if it is not known.
 */
static __always_inline __u32 begin_path(struct window *w, struct path_name *p, struct dentry *dentry, __u32 magic)
{
	struct seen_name *own = &p->seen[0];
	__u32 len;

	see_name(w, own, dentry);
	len = SEE(w, struct dentry, d_name.len);
	p->parent = 0;
	p->depth = 1;
	p->flags = 0;
	p->next = own->parent;
	if (own->seq & 1)
		return 0;
	if (len >= MOSTRACE_NAME_MAX) {
		len = MOSTRACE_NAME_MAX - 1;
		p->flags = MOSTRACE_NAME_CUT;
	}
	len &= MOSTRACE_NAME_MAX - 1;
	p->len = len;
	__builtin_memset(p->name, 0, PATH_SHORT);
	if (!len || bpf_probe_read_kernel(p->name, len, SEE(w, struct dentry, d_name.name)) ||
	    seq_of(dentry) != own->seq)
		return 0;
	/* A root is its own parent. */
	if (own->parent && own->parent != dentry) {
		OPEN(w, struct dentry, own->parent);
		p->parent = file_number(SEE(w, struct dentry, d_inode), magic);
	}
	return len;
}

/*
 * Appends the next folder's name and a slash. Not static, so that the verifier walks it once. Returns whether to
 * continue.
 */
__noinline int climb(__u32 slot)
{
	struct work *w = work_of(slot);
	struct seen_name *seen;
	struct path_name *p;
	__u32 len, at;
	char *name;

	if (!w)
		return 0;
	p = path_in_hand(w);
	at = p->len & (MOSTRACE_NAME_MAX - 1);
	if (p->next == p->root) {
		p->whole = true;
		return 0;
	}
	seen = &p->seen[p->depth & (DEPTH_MAX - 1)];
	see_name(&w->ascent.window, seen, p->next);
	len = SEE(&w->ascent.window, struct dentry, d_name.len);
	/* A dentry that is its own parent but not the root is not part of the tree. */
	if (!len || seen->parent == p->next || at + len + 1 >= MOSTRACE_NAME_MAX)
		return 0;
	len &= MOSTRACE_NAME_MAX - 1;
	name = p->name + at;
	if (bpf_probe_read_kernel(name, len, SEE(&w->ascent.window, struct dentry, d_name.name)))
		return 0;
	name[len] = '/';
	p->next = seen->parent;
	p->depth++;
	p->len = at + len + 1;
	return 1;
}

/*
 * Appends the names of the folders above, each behind a slash, and one more slash for the root. Returns true if the
 * path is complete: not if something was moved meanwhile, or if the path is too long.
 */
static __always_inline bool climb_up(struct work *w, __u32 slot, struct super_block *sb)
{
	struct path_name *p = path_in_hand(w);
	__u32 len = p->len & (MOSTRACE_NAME_MAX - 1);

	p->root = LOAD(sb, s_root);
	if (p->seen[0].dentry == p->root)
		return true;
	if (len + 1 >= MOSTRACE_NAME_MAX)
		return false;
	p->whole = false;
	p->name[len] = '/';
	p->len = len + 1;
	for (int i = 1; i < DEPTH_MAX && climb(slot); i++)
		;
	return p->whole && is_path(slot);
}

#define NAME_TRIES 3

/* Makes the dentry's path, or otherwise its name, the current one. Returns its length, or 0 if it is not known. */
static __always_inline __u32 find_path(struct work *w, __u32 slot, struct dentry *dentry, struct super_block *sb,
				       __u32 magic)
{
	struct path_name *p;
	__u32 len = 0;

	w->path = (__u64)dentry >> 6;
	p = path_in_hand(w);
	if (p->inode == w->run.inode && p->ino == w->ino && p->seen[0].dentry == dentry && is_path(slot))
		return p->len;
	p->inode = 0;
	for (int try = 0; !len && try < NAME_TRIES; try++)
		len = begin_path(&w->ascent.window, p, dentry, magic);
	if (!len || !climb_up(w, slot, sb))
		return len;
	p->inode = w->run.inode;
	p->ino = w->ino;
	return p->len;
}

/* Puts the name behind the entry. */
static __always_inline void name_file(struct work *w, __u32 slot, struct mostrace_file *f, struct dentry *dentry,
				      struct super_block *sb, __u32 magic)
{
	__u32 len = find_path(w, slot, dentry, sb, magic) & (MOSTRACE_NAME_MAX - 1);
	struct path_name *p = path_in_hand(w);
	char *name = (char *)f + sizeof(*f);

	if (!len)
		return;
	if (len <= PATH_SHORT) {
		/* clang would copy bytes one by one. */
		*(struct short_path *)name = *(struct short_path *)p->name;
	} else {
		/* Pads with NULs to a multiple of 8. */
		*(__u64 *)(name + ((len - 1) & (MOSTRACE_NAME_MAX - 8))) = 0;
		bpf_probe_read_kernel(name, len, p->name);
	}
	f->parent = p->parent;
	f->head.flags |= p->flags;
	f->name_len = len;
	f->head.size += (len + 7) & (2 * MOSTRACE_NAME_MAX - 8);
}

/* Makes a file entry of the current run. Not static, so that the verifier walks it once. */
__noinline int put_file(__u32 slot)
{
	struct work *w = work_of(slot);
	struct dentry *dentry;
	struct mostrace_file *f;
	struct super_block *sb;
	struct inode *inode;
	struct window *i;
	__u32 magic;

	if (!w)
		return 0;
	f = (struct mostrace_file *)room(w);
	inode = w->run.inode;
	i = &w->inode;
	OPEN(i, struct inode, inode);
	sb = SEE(i, struct inode, i_sb);
	magic = LOAD(sb, s_magic);
	put_head(&f->head, w, MOSTRACE_FILE, sizeof(*f), w->run.sector, w->run.bytes);
	w->ino = file_number(inode, magic);
	f->ino = w->ino;
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
	f->name_len = 0;
	f->origin = w->run.origin;
	f->what = what_of(SEE(i, struct inode, i_mode));
	dentry = w->run.dentry;
	if (!dentry)
		dentry = inode_dentry(inode);
	if (dentry)
		name_file(w, slot, f, dentry, sb, magic);
	w->used += f->head.size;
	return 0;
}

static __always_inline void put_run(struct work *w, __u32 slot, const struct run *run)
{
	w->run = *run;
	put_file(slot);
}

#endif
