/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The names of the files that calls refer to. A file that is removed before it is written out gets no name from its
 * blocks. Each file is named once, ahead of its first call.
 */
#ifndef MOSTRACE_CALLED_BPF_H
#define MOSTRACE_CALLED_BPF_H

#include "causes.bpf.h"
#include "number.bpf.h"
#include "path.bpf.h"

/* Files that were named; one that is forgotten is named again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, struct called_file);
	__type(value, __u8);
} called SEC(".maps");

static __always_inline void tell_called(struct called_path *p, const struct called_file *file, struct inode *inode,
					struct dentry *dentry)
{
	__u32 magic = inode_magic(inode);
	__u32 len = p->len & (MOSTRACE_NAME_MAX - 1), size = sizeof(struct mostrace_file) + ((len + 7) & ~7U);
	struct mostrace_file *f = (struct mostrace_file *)p->out;

	/* Pads with NULs to a multiple of 8. */
	*(__u64 *)(names_of(p) + (len & ~7U)) &= (1ULL << (len & 7) * 8) - 1;
	*f = (struct mostrace_file){
		.ino = file->ino,
		.generation = file->generation,
		.s_dev = file->s_dev,
		.offset = MOSTRACE_NONE,
		.parent = file_number(BPF_CORE_READ(dentry, d_parent, d_inode), magic),
		.nlink = BPF_CORE_READ(inode, i_nlink),
		.name_len = len,
		.origin = MOSTRACE_ORIGIN_FILE,
		.what = MOSTRACE_WHAT_REGULAR,
	};
	f->head = cause_head(MOSTRACE_FILE, size, bpf_ktime_get_ns());
	if (is_number_passing(magic))
		f->head.flags |= MOSTRACE_INO_PASSING;
	if (!f->nlink)
		f->head.flags |= MOSTRACE_UNLINKED;
	else if (f->nlink > 1)
		f->head.flags |= MOSTRACE_HARDLINKED;
	if (size <= sizeof(p->out))
		put_cause(f, size);
}

static __always_inline bool is_same_file(const struct called_file *a, const struct called_file *b)
{
	return a->ino == b->ino && a->generation == b->generation && a->s_dev == b->s_dev;
}

/* Returns true if the file that a call is known to be about is the one that was named last. Most calls follow one for the same. */
static __always_inline bool is_named_last(const struct mostrace_call *call)
{
	struct called_file file = { .ino = call->ino, .generation = call->generation, .s_dev = call->s_dev };
	__u32 zero = 0;
	struct called_path *p = bpf_map_lookup_elem(&called_paths, &zero);

	return p && file.ino && is_same_file(&p->last, &file);
}

/* Records the name of a regular file that a call refers to, unless that was done before. */
static __always_inline void name_called(struct inode *inode, struct dentry *dentry)
{
	struct called_file file = {
		.ino = number_of(inode),
		.generation = LOAD(inode, i_generation),
		.s_dev = LOAD(inode, i_sb, s_dev),
	};
	__u32 zero = 0;
	struct called_path *p = bpf_map_lookup_elem(&called_paths, &zero);
	__u8 one = 1;

	if (!p)
		return;
	if (!bpf_map_lookup_elem(&called, &file)) {
		if ((LOAD(inode, i_mode) & S_IFMT) != S_IFREG || !find_called_path(p, dentry))
			return;
		tell_called(p, &file, inode, dentry);
		bpf_map_update_elem(&called, &file, &one, BPF_ANY);
	}
	p->last = file;
}

#endif
