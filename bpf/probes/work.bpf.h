/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of a probe while it makes the entries of a bio. It is in a map because the verifier (until 6.8 or so) adds
 * up the stacks of a chain of calls, and the chain down to a page is long. Each probe has its own state per CPU:
 * another probe may run in between, but not the same one. From 6.1 on the kernel skips a program that is already running
 * on the CPU, in a task that was preempted or below an interrupt, and counts that; before, a task is not preempted within
 * a program, and one that an interrupt starts while the state is in use counts itself as skipped (take_work).
 */
#ifndef MOSTRACE_WORK_BPF_H
#define MOSTRACE_WORK_BPF_H

#include "above.bpf.h"
#include "blockevents.bpf.h"
#include "loss.bpf.h"

/* A run of a bio with consecutive bytes of one file. */
struct run {
	struct inode *inode;
	struct dentry *dentry;	/* the name used to open it; NULL: any name of the inode */
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
	__u32 flags;		/* flags of its entry */
	bool has_begun;		/* it is in writing_pages */
};

/* A walk over a bio's pages; the runs end at `sector`. */
struct page_walk {
	struct bio_vec *next;	/* the bvec after the current one */
	__u64 page;		/* first page of the current bvec */
	__u32 len;
	__u32 offset;
	__u32 done;		/* bytes of it that are walked */
	__u32 left;		/* bytes of the bio that are left to walk */
	__u64 sector;
	__u64 mapping;		/* mapping of the page before, and what it leads to: */
	struct inode *inode;
	__u8 origin;
	__u8 first_origin;	/* origin of the bio's first page */
	__u8 begun;
	__u8 writes;
	__u8 is_mapped;		/* the mapping may be written through a program's memory */
	__u8 settles;		/* the bio is another disk's: no entries are made of it */
	struct run file;
	struct dirty_run dirtier;
};

#define ENTRY_MAX (sizeof(struct mostrace_file) + MOSTRACE_NAME_MAX)
#define OUT_BYTES 2048

/* The most names in a path: the file's own and those of its folders; a power of 2. */
#define DEPTH_MAX 16

/* A dentry whose name was read, with what shows whether it still has that name and place. */
struct seen_name {
	struct dentry *dentry;
	struct dentry *parent;
	__u64 hash_len;		/* hash of the name and the parent, and the name's length */
	__u32 seq;		/* d_seq */
};

/*
 * The name of a file, and the path from it up to the root. It is kept because most bios follow one of the same file:
 * then it is enough to check that all dentries are unchanged.
 */
struct path_name {
	struct inode *inode;	/* NULL: nothing is kept */
	__u64 ino;		/* its number: d_tmpfile makes a name of it, and leaves the hash as it was */
	struct dentry *next;	/* the next dentry to climb to */
	struct dentry *root;	/* root of the filesystem */
	__u64 parent;		/* inode number of the folder */
	__u32 len;		/* length so far, bytes */
	__u32 depth;
	__u8 flags;		/* flags for the entry: MOSTRACE_NAME_CUT */
	bool whole;		/* the root was reached */
	struct seen_name seen[DEPTH_MAX];
	/* Room for one more name behind one of any length, as the verifier requires. */
	char name[2 * MOSTRACE_NAME_MAX];
};

/* The length up to which a path is copied without a helper, a multiple of 8. */
#define PATH_SHORT 64
struct short_path {
	__u64 words[PATH_SHORT / 8];
};

/* The number of paths that are kept, by their dentries; a power of 2. */
#define PATHS 4

struct work {
	struct ascent ascent;
	struct submitter who;
	struct page_walk walk;
	struct run run;		/* the run for which put_file makes an entry */
	struct buffer_head *buffer;	/* the buffer that the bio writes, if the bio was made for one */
	struct window inode;
	struct path_name paths[PATHS];
	__u64 ino;		/* number of the file of the current run */
	__u32 path;		/* index of the current path */
	__u32 in_use;		/* a program is between take_work and leave_work */
	__u32 used;		/* used bytes of `out` */
	/* These three must be adjacent, as they go into one record of the ring. */
	struct queued_record queued;	/* its size is 0 if there is no event of the bio */
	struct mostrace_process process;
	char out[OUT_BYTES];	/* further entries */
};

_Static_assert(sizeof(struct mostrace_process) % 8 == 0, "nothing lies between the entries");

enum work_slot {
	WORK_QUEUE,
	WORK_REMAP,
	/*
	 * Of two programs, of which one alone finds flushes: those of a disk with requests end in block_rq_complete, where the block
	 * layer keeps interrupts off (mq_flush_lock in block/blk-flush.c), and those of a disk without in block_bio_complete.
	 */
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

/* Returns the state for a run of the slot's program, until leave_work; NULL if a run of it is in progress on this CPU. */
static __always_inline struct work *take_work(__u32 slot)
{
	struct work *w = work_of(slot);

	if (!w)
		return 0;
	if (w->in_use) {
		lose(LOSS_NESTED);
		return 0;
	}
	w->in_use = true;
	/* An interrupt sees what the program has written before, in this order: only the compiler could change it. */
	asm volatile("" ::: "memory");
	return w;
}

static __always_inline void leave_work(struct work *w)
{
	asm volatile("" ::: "memory");
	w->in_use = false;
}

/* Each record holds whole entries. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} shared_ring SEC(".maps");

/* Keeps clang from testing one copy of a bound and using another one, about which the verifier then knows nothing. */
#define SETTLE(bound) asm volatile("" : "+r"(bound))

/* Sends what is in `out`, because there is no room for more. */
static __noinline void flush_out(struct work *w)
{
	__u64 flags = wake_flags(&shared_ring, w->process.head.time_ns);
	__u64 used = w->used;

	/* room() leaves less than OUT_BYTES in use. */
	SETTLE(used);
	used &= OUT_BYTES - 1;
	if (used && bpf_ringbuf_output(&shared_ring, w->out, used, flags))
		lose(LOSS_ENTRIES_RING);
	w->used = 0;
}

/* Sends the event of the bio if there is one, the current process entry, and what is in `out`. Returns 0 if there was room. */
static __always_inline long put_all(struct work *w)
{
	__u64 flags = wake_flags(&shared_ring, w->process.head.time_ns);
	__u64 used = w->used;
	long error;

	SETTLE(used);
	used &= OUT_BYTES - 1;
	if (w->queued.event.size) {
		error = bpf_ringbuf_output(&shared_ring, &w->queued, sizeof(w->queued) + sizeof(w->process) + used, flags);
		if (error)
			lose_event();
	} else {
		error = bpf_ringbuf_output(&shared_ring, &w->process, sizeof(w->process) + used, flags);
	}
	if (error)
		lose(LOSS_ENTRIES_RING);
	w->used = 0;
	return error;
}

/* Sends the event of the bio alone, if there is one. */
static __noinline void put_queued(struct work *w)
{
	if (w->queued.event.size &&
	    bpf_ringbuf_output(&shared_ring, &w->queued, sizeof(w->queued), wake_flags(&shared_ring, w->process.head.time_ns)))
		lose_event();
}

/* Returns room for the longest entry; the caller adds to `used` what it needs. */
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

/* Fills in the head of an entry of the current bio. */
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
