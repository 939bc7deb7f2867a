/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which handle was the first in its transaction to modify a block. If the kernel allows a program at
 * jbd2_journal_dirty_metadata, every modification of a block is reported. Otherwise (walks_lists) the blocks are looked for when the
 * handle ends: those that were new to the transaction are the last ones in t_buffers, except for those of handles that
 * ended meanwhile; those that the committing transaction still holds are in its lists, promised to the running one
 * (fs/jbd2/transaction.c). Nothing is locked, and the lists change during the walk: blocks that it misses have no
 * handle. Before 5.17 (MOSTRACE_LOOPLESS) there is no such walk, and there are causes only with the program.
 */
#ifndef MOSTRACE_FIRST_BPF_H
#define MOSTRACE_FIRST_BPF_H

#include "dirtied.bpf.h"

/* User space sets it when all programs are attached and none sees each modification. */
bool walks_lists;

static __always_inline struct transaction_s *current_transaction(void)
{
	struct task_struct *task = this_task();
	struct jbd2_journal_handle *handle = OF_TASK(task, journal_info);

	return handle ? JBD2(handle, h_transaction, HANDLE_TRANSACTION) : 0;
}

#ifdef MOSTRACE_LOOPLESS
static __always_inline void tear(__u32 s_dev, __u32 tid) {}

static __always_inline __u32 name_dirtied(__u64 handle, __u32 s_dev, __u32 tid, __u32 wanted)
{
	return 0;
}
#else
/* The handle for which a block is stored. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 16);
	__type(key, struct claim);
	__type(value, __u64);
} claims SEC(".maps");

struct journal_tid {
	__u32 s_dev;
	__u32 tid;
};

/*
 * Transactions in which the blocks of some handle were not all found: the remaining ones must not be attributed to
 * another handle.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 10);
	__type(key, struct journal_tid);
	__type(value, __u8);
} torn SEC(".maps");

static __always_inline void tear(__u32 s_dev, __u32 tid)
{
	struct journal_tid key = { .s_dev = s_dev, .tid = tid };
	__u8 is_torn = 1;

	bpf_map_update_elem(&torn, &key, &is_torn, BPF_ANY);
}

/* A walk over several lists. */
struct dirtied_walk {
	struct mostrace_dirtied entry;
	struct transaction_s *transaction;	/* the handle's */
	struct journal_head *head;		/* first element of the list */
	struct journal_head *next;
	__u32 lists;				/* number of lists begun so far */
	__u32 left;				/* most blocks of the list that are still looked at */
	__u32 wanted;
	__u32 none;				/* 0, which the verifier does not know: it follows no sums with it apart */
	bool is_kept;				/* the list is the committing transaction's */
	bool is_torn;
};

/* Longer lists are not walked to their end: blocks that are not found have no handle. */
#define WALK_MAX 4096

/*
 * First the running transaction's list, where nearly all blocks are found; then those of the committing one, in the
 * order in which the commit moves a block on, and last the running one's, so that no block is missed. From there once
 * more, because a block that is moved leads the walk out of its list.
 */
enum { LIST_NEW, LIST_BUFFERS, LIST_SHADOW, LIST_FORGET, LISTS_ROUND };
#define LISTS_MAX (2 * LISTS_ROUND + 1)

static __always_inline bool is_ours(const struct dirtied_walk *w, struct journal_head *jh)
{
	if (w->is_kept)
		return BPF_CORE_READ(jh, b_next_transaction) == w->transaction &&
		       BPF_CORE_READ(jh, b_modified) == 1;
	return BPF_CORE_READ(jh, b_transaction) == w->transaction;
}

/* Attributes a block to the handle if no handle has it yet. Returns true if one had it. */
static __always_inline bool claim_block(struct dirtied_walk *w, struct journal_head *jh)
{
	struct buffer_head *bh = BPF_CORE_READ(jh, b_bh);
	struct claim claim = claim_of(&w->entry, bh);

	if (bpf_map_update_elem(&claims, &claim, &w->entry.handle, BPF_NOEXIST))
		return true;
	put_dirtied(&w->entry, bh, &claim);
	w->wanted--;
	return false;
}

static __always_inline struct journal_head *kept_list(struct transaction_s *committing, __u32 list)
{
	if (!committing)
		return 0;
	if (list == LIST_BUFFERS)
		return BPF_CORE_READ(committing, t_buffers);
	if (list == LIST_SHADOW)
		return BPF_CORE_READ(committing, t_shadow_list);
	return BPF_CORE_READ(committing, t_forget);
}

static __always_inline struct journal_head *previous(struct journal_head *jh)
{
	return jh ? BPF_CORE_READ(jh, b_tprev) : 0;
}

static __always_inline void begin_list(struct dirtied_walk *w)
{
	struct transaction_s *transaction = w->transaction;
	__u32 list = w->lists++ % LISTS_ROUND;

	w->left = WALK_MAX + w->none;
	w->is_kept = list != LIST_NEW;
	if (w->is_kept) {
		w->entry.head.flags = MOSTRACE_DIRTIED_KEPT;
		w->head = kept_list(BPF_CORE_READ(transaction, t_journal, j_committing_transaction), list);
		w->next = w->head;
	} else {
		w->entry.head.flags = MOSTRACE_DIRTIED_NEW;
		w->head = BPF_CORE_READ(transaction, t_buffers);
		w->next = previous(w->head);
	}
}

/* Returns the block behind this one, or NULL at the end of the list. */
static __always_inline struct journal_head *behind(const struct dirtied_walk *w, struct journal_head *jh)
{
	struct journal_head *next;

	if (w->is_kept) {
		next = BPF_CORE_READ(jh, b_tnext);
		return next == w->head ? 0 : next;
	}
	return jh == w->head ? 0 : previous(jh);
}

static long walk_step(__u32 index, void *context)
{
	struct dirtied_walk *w = context;
	struct journal_head *jh = w->next;

	if (!w->wanted)
		return 1;
	if (!jh || !w->left) {
		if (w->is_torn || w->lists == LISTS_MAX)
			return 1;
		begin_list(w);
		return 0;
	}
	w->left--;
	w->next = behind(w, jh);
	if (!is_ours(w, jh)) {
		if (!w->is_kept)
			w->next = 0;
	} else if (claim_block(w, jh) && w->is_torn) {
		/* Blocks behind it may belong to another handle. */
		return 1;
	}
	return 0;
}

/*
 * Attributes `wanted` blocks of a handle that have no entry, as far as they are found in the task's transaction. Returns the number
 * that was found. The verifier follows a global function once, and a static one in each state in which it is called.
 */
__noinline int name_dirtied(__u64 handle, __u32 s_dev, __u32 tid, __u32 wanted)
{
	struct journal_tid key = { .s_dev = s_dev, .tid = tid };
	__u32 same = wanted;
	struct dirtied_walk w = {
		.entry.handle = handle,
		.entry.tid = tid,
		.transaction = current_transaction(),
		.wanted = wanted,
		.is_torn = bpf_map_lookup_elem(&torn, &key),
	};

	asm volatile("" : "+r"(same));
	w.none = wanted - same;
	w.lists = w.none;
	w.entry.head = cause_head(MOSTRACE_DIRTIED, sizeof(w.entry), bpf_ktime_get_ns());
	begin_list(&w);
	bpf_loop(LISTS_MAX * (WALK_MAX + 1), walk_step, &w, 0);
	if (w.wanted)
		tear(s_dev, tid);
	return wanted - w.wanted;
}
#endif

#endif
