/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a probe has in hand while it makes the entries of a bio. It lies in a map: the verifier (until 6.8
 * or so) sums the stacks of a chain of calls, and the chain down to a page is long. Each probe has its own,
 * of each CPU: another probe may run in between, the same one may not (from 5.13 on the kernel sees to it;
 * before, no bio is queued from an interrupt).
 */
#ifndef MOSTRACE_WORK_BPF_H
#define MOSTRACE_WORK_BPF_H

#include "above.bpf.h"
#include "ring.bpf.h"

/* A run of a bio that holds consecutive bytes of one file. */
struct run {
	struct inode *inode;
	struct dentry *dentry;	/* the name used to open it; NULL: any of the inode's */
	__u64 offset;
	__u64 sector;
	__u32 bytes;
	__u8 origin;
};

/* Consecutive bytes of a bio that one task dirtied. */
struct dirty_run {
	__u64 key;		/* its first page or buffer, in dirty_pages */
	__u32 bytes;
	__u32 pid;
};

/* A walk over a bio's pages; the runs end at `sector`. */
struct page_walk {
	struct bio_vec *next;	/* the bvec after the one in hand */
	__u64 page;		/* of the bvec in hand */
	__u32 len;
	__u32 offset;
	__u32 done;		/* bytes of it already walked */
	__u32 left;		/* bytes of the bio still to walk */
	__u64 sector;
	__u64 mapping;		/* of the page before, and what it says: */
	struct inode *inode;
	__u8 origin;
	__u8 first_origin;	/* of the bio's first page */
	__u8 begun;
	__u8 writes;
	struct run file;
	struct dirty_run dirtier;
};

/* A name of any length behind another one, as the verifier sees it. */
#define ENTRY_MAX (sizeof(struct mostrace_file) + 2 * MOSTRACE_NAME_MAX)
#define OUT_BYTES 2048

/* Names of a path, the file's own and those of its folders; a power of 2. */
#define DEPTH_MAX 16

/* The way from a name up to the root. */
struct climb {
	struct dentry *dentry;	/* that is next */
	struct dentry *root;	/* of the filesystem */
	__u32 len;		/* bytes so far */
	bool whole;		/* the root was reached */
	__u32 depth;
	/* Those whose names were read, and their d_seq then. */
	struct {
		struct dentry *dentry;
		__u32 seq;
	} seen[DEPTH_MAX];
};

struct work {
	struct ascent ascent;
	struct submitter who;
	struct page_walk walk;
	struct run run;		/* that put_file is to tell of */
	struct buffer_head *buffer;	/* that the bio writes, if it was made for one */
	struct window inode;
	struct climb climb;
	struct mostrace_process process;
	__u64 used;		/* of `out` */
	char out[OUT_BYTES];	/* entries, one after the other: one record of the ring */
};

enum work_slot {
	WORK_QUEUE,
	WORK_REMAP,
	WORK_FLUSH,
	WORK_SLOTS,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WORK_SLOTS);
	__type(key, __u32);
	__type(value, struct work);
} works SEC(".maps");

static __always_inline struct work *work_of(__u32 slot)
{
	return bpf_map_lookup_elem(&works, &slot);
}

/* Each record holds whole entries. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} entries SEC(".maps");

/* Keeps clang from testing one copy of a bound and using another, of which the verifier then knows nothing. */
#define SETTLE(bound) asm volatile("" : "+r"(bound))

/* Hands over what is in `out`. */
static __noinline void flush_out(struct work *w)
{
	__u64 used = w->used;
	__u64 flags = output_flags(&entries, used + RING_HEAD);

	/*
	 * room() leaves less than OUT_BYTES. It is said behind the comparison of output_flags, from which 6.12 takes
	 * wrong bounds.
	 */
	SETTLE(used);
	used &= OUT_BYTES - 1;
	if (used && bpf_ringbuf_output(&entries, w->out, used, flags))
		lose(LOSS_ENTRIES_RING);
	w->used = 0;
}

/* Room for the longest entry; the caller adds to `used` what it took. */
static __always_inline char *room(struct work *w)
{
	__u64 used = w->used;

	SETTLE(used);
	if (used >= OUT_BYTES - ENTRY_MAX) {
		flush_out(w);
		used = 0;
	}
	return w->out + used;
}

/* Puts the process entry in hand into `out`. */
static __always_inline void put_process(struct work *w)
{
	*(struct mostrace_process *)room(w) = w->process;
	w->used += sizeof(w->process);
}

/* The head of every entry of the bio. */
static __always_inline void put_head(struct mostrace_entry *head, const struct work *w, __u16 type,
				     __u16 size, __u64 sector, __u32 bytes)
{
	*head = w->process.head;
	head->type = type;
	head->size = size;
	head->sector = sector;
	head->bytes = bytes;
	head->flags = 0;
}

#endif
