/* SPDX-License-Identifier: GPL-2.0-only */
/* The path of a dentry within its filesystem. */
#ifndef MOSTRACE_PATH_BPF_H
#define MOSTRACE_PATH_BPF_H

#include "compat.bpf.h"
#include "mostrace.h"

/* The most names in a path: the file's own and those of its folders. */
#define CALLED_DEPTH 24

struct called_file {
	__u64 ino;
	__u32 generation;
	__u32 s_dev;
};

/* The path from a file up to the root of its filesystem. It is in a map because it is too large for the stack. */
struct called_path {
	struct called_file last;	/* the file that this CPU named, or knew by name, last */
	struct dentry *dentry;	/* the current dentry */
	struct dentry *root;
	__u64 sum;		/* checksum of the dentries read: equal if nothing was renamed meanwhile */
	__u32 len;
	bool names;		/* names are wanted, not only the checksum */
	bool whole;
	/* The entry, and the names behind it. */
	char out[sizeof(struct mostrace_file) + 2 * MOSTRACE_NAME_MAX] __attribute__((aligned(8)));
};

_Static_assert(sizeof(struct mostrace_file) % 8 == 0, "the name lies right behind the entry");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct called_path);
} called_paths SEC(".maps");

static __always_inline char *names_of(struct called_path *p)
{
	return p->out + sizeof(struct mostrace_file);
}

static __always_inline __u64 add_to_sum(__u64 sum, __u64 value)
{
	return (sum ^ value) * 0x9e3779b97f4a7c15ULL;
}

/* As an instruction of its own: clang leaves out what it knows to be so, and the verifier of 6.1 forgets it. */
#define BOUND(value) asm volatile("%0 &= %1" : "+r"(value) : "i"(MOSTRACE_NAME_MAX - 1))

/* Appends the name of the current dentry, with a slash. */
static __always_inline bool put_name(struct called_path *p, struct dentry *dentry)
{
	__u64 len = PEEK(dentry, d_name.len), at = p->len;

	if (!len || len >= MOSTRACE_NAME_MAX || at >= MOSTRACE_NAME_MAX || at + len + 1 >= MOSTRACE_NAME_MAX)
		return false;
	BOUND(len);
	BOUND(at);
	if (bpf_probe_read_kernel(names_of(p) + at, len, PEEK(dentry, d_name.name)))
		return false;
	at += len;
	names_of(p)[at & (2 * MOSTRACE_NAME_MAX - 1)] = '/';
	p->len = at + 1;
	return true;
}

/* Takes one step up the path. Returns 1 at its end. */
static long called_climb(__u32 nth, struct called_path **path)
{
	struct called_path *p = *path;
	struct dentry *dentry = p->dentry, *parent = PEEK(dentry, d_parent);
	__u32 seq = PEEK(dentry, d_seq.seqcount.sequence);

	if (dentry == p->root) {
		p->whole = true;
		return 1;
	}
	/*
	 * The sequence number is odd while the name is changed. A dentry that is its own parent but not the root is
	 * not part of the tree.
	 */
	if (seq & 1 || parent == dentry || !parent)
		return 1;
	p->sum = add_to_sum(p->sum, (__u64)dentry);
	p->sum = add_to_sum(p->sum, (__u64)parent);
	p->sum = add_to_sum(p->sum, seq);
	if (p->names && !put_name(p, dentry))
		return 1;
	p->dentry = parent;
	return 0;
}

#ifdef MOSTRACE_LOOPLESS
/* Kernels before 5.17 have no bpf_loop. Each step is a function of its own, which the verifier walks once. */
__noinline int climb_step(void)
{
	__u32 zero = 0;
	struct called_path *p = bpf_map_lookup_elem(&called_paths, &zero);

	return p ? called_climb(0, &p) : 1;
}

static __always_inline void climb_all(struct called_path *p)
{
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < CALLED_DEPTH; i++)
		if (climb_step())
			break;
}
#else
static __always_inline void climb_all(struct called_path *p)
{
	bpf_loop(CALLED_DEPTH, called_climb, &p, 0);
}
#endif

/* Walks the whole path up. Returns the checksum, or 0 if it does not lead to the root. */
static __always_inline __u64 climb_called(struct called_path *p, struct dentry *dentry, bool names)
{
	p->dentry = dentry;
	p->sum = 1;
	p->names = names;
	p->whole = false;
	climb_all(p);
	return p->whole ? p->sum : 0;
}

/* Stores only the file's own name; fails if it was renamed meanwhile. */
static __always_inline bool own_name(struct called_path *p, struct dentry *dentry)
{
	__u32 seq = PEEK(dentry, d_seq.seqcount.sequence);

	p->len = 0;
	if (seq & 1 || !put_name(p, dentry))
		return false;
	p->len--;
	return PEEK(dentry, d_seq.seqcount.sequence) == seq;
}

static __always_inline bool find_called_path(struct called_path *p, struct dentry *dentry)
{
	__u64 sum;

	p->len = 0;
	p->root = BPF_CORE_READ(dentry, d_inode, i_sb, s_root);
	sum = climb_called(p, dentry, true);
	if (sum && climb_called(p, dentry, false) == sum)
		return true;
	return own_name(p, dentry);
}

#endif
