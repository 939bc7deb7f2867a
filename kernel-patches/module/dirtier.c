// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who dirtied a page of the page cache: the task that made it dirty after it was
 * clean, remembered from then on until its next write, or until it leaves the
 * cache. Not who was to write it, could not write all of it, and made it dirty
 * again. The table has a fixed size: a page that was written is replaced first, and
 * one that finds no place is counted.
 *
 * A page may be dirtied again while it is being written, so what is being written
 * is kept apart from what is dirty now. A kernel with the tracepoint
 * writeback_start_folio tells when the one becomes the other. Without it that is
 * taken to be when the bio's entries are made, a moment later: a page that another
 * task dirtied in between has two dirtiers, and neither is recorded.
 */
#include <linux/hash.h>
#include <linux/ktime.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>
#include "compat.h"
#include "count.h"
#include "dirtier.h"
#include "endio.h"
#include "inode.h"
#include "target.h"

#define BUCKET_BITS 14
#define WAYS 8

/* A folio, known by its head page; the struct page may have become another's since. */
struct slot {
	const struct page *head;
	const struct address_space *mapping;
	u64 index;
	struct mostrace_task dirty;	/* pid 0: nobody since writing began */
	struct mostrace_task writing;
	bool doubt;	/* `dirty` is one of several */
};

struct bucket {
	raw_spinlock_t lock;
	struct slot slots[WAYS];
};

bool mostrace_begin_told;

static struct bucket *buckets;

static struct bucket *bucket_of(const struct page *head)
{
	return &buckets[hash_ptr(head, BUCKET_BITS)];
}

static struct slot *slot_of(struct bucket *bucket, const struct page *head)
{
	int i;

	for (i = 0; i < WAYS; i++)
		if (READ_ONCE(bucket->slots[i].head) == head)
			return &bucket->slots[i];
	return NULL;
}

/* One that is free, or else one that has been written. */
static struct slot *empty_slot(struct bucket *bucket)
{
	struct slot *slot = slot_of(bucket, NULL);
	int i;

	for (i = 0; i < WAYS && !slot; i++)
		if (!bucket->slots[i].dirty.pid)
			slot = &bucket->slots[i];
	return slot;
}

static bool is_of(const struct slot *slot, const struct address_space *mapping, u64 index)
{
	return slot->mapping == mapping && slot->index == index;
}

static bool is_flusher(void)
{
	struct work_struct *work;

	if (!(current->flags & PF_WQ_WORKER))
		return false;
	work = current_work();
	return work && mostrace_endio_of(work->func) == MOSTRACE_WORK_FLUSHER;
}

/* A kernel thread has the name that the kernel gave it. */
static bool is_jbd2(void)
{
	return current->flags & PF_KTHREAD && strstarts(current->comm, "jbd2/");
}

/*
 * Whether the current task writes the inode's pages for others: those that it cannot
 * write, or not whole (of several blocks, some have no place yet), it makes dirty
 * anew. Metadata is made dirty by jbd2 alone.
 */
static bool is_writeback(const struct inode *inode)
{
	return is_flusher() || (!mostrace_is_bdev(inode) && is_jbd2());
}

/*
 * Writeback that cannot write a page dirties it again: the flusher did not make
 * the data. Another task may have, or may be the one that fsyncs: not known.
 */
static void dirty_again(struct slot *slot, const struct mostrace_task *who)
{
	if (current->flags & PF_KTHREAD || slot->dirty.pid == who->pid)
		return;
	slot->doubt = true;
}

static void dirty_slot(struct slot *slot, const struct page *head,
		       const struct address_space *mapping, u64 index,
		       const struct mostrace_task *who)
{
	if (slot->head == head && is_of(slot, mapping, index)) {
		if (slot->dirty.pid) {
			dirty_again(slot, who);
			return;
		}
	} else {
		slot->writing.pid = 0;
	}
	slot->mapping = mapping;
	slot->index = index;
	slot->dirty = *who;
	slot->doubt = false;
	WRITE_ONCE(slot->head, head);
}

/* A clean page is made dirty, by the current task. */
void mostrace_dirty(struct page *head, const struct address_space *mapping)
{
	struct mostrace_task who;
	struct bucket *bucket;
	unsigned long flags;
	struct slot *slot;

	if (!mapping->host || !mostrace_inode_wanted(mapping->host) ||
	    is_writeback(mapping->host))
		return;
	mostrace_task_is_current(&who, ktime_get_ns());
	/* The idle task, in an interrupt: nobody. */
	if (!who.pid)
		return;
	bucket = bucket_of(head);
	raw_spin_lock_irqsave(&bucket->lock, flags);
	slot = slot_of(bucket, head);
	if (!slot)
		slot = empty_slot(bucket);
	if (slot)
		dirty_slot(slot, head, mapping, mostrace_page_index(head), &who);
	raw_spin_unlock_irqrestore(&bucket->lock, flags);
	if (!slot)
		mostrace_count(MOSTRACE_LOST_DIRTIERS);
}

/* The page leaves the cache, written or thrown away: its memory is another's. */
void mostrace_drop(const struct page *head)
{
	struct bucket *bucket = bucket_of(head);
	unsigned long flags;
	struct slot *slot;

	/* Nobody puts a page in while it leaves. */
	if (!slot_of(bucket, head))
		return;
	raw_spin_lock_irqsave(&bucket->lock, flags);
	slot = slot_of(bucket, head);
	if (slot) {
		WRITE_ONCE(slot->head, NULL);
		slot->dirty.pid = 0;
		slot->writing.pid = 0;
	}
	raw_spin_unlock_irqrestore(&bucket->lock, flags);
}

/* The rest of a page that was written in part has its dirtier already. */
static void begin_slot(struct slot *slot)
{
	if (!slot->dirty.pid)
		return;
	slot->writing = slot->dirty;
	if (slot->doubt)
		slot->writing.pid = 0;
	slot->dirty.pid = 0;
}

/* What the page holds now begins to be written. */
void mostrace_begin_write(struct page *head)
{
	struct bucket *bucket = bucket_of(head);
	unsigned long flags;
	struct slot *slot;

	/* Nobody puts a page in while it is written. */
	if (!slot_of(bucket, head))
		return;
	raw_spin_lock_irqsave(&bucket->lock, flags);
	slot = slot_of(bucket, head);
	if (slot)
		begin_slot(slot);
	raw_spin_unlock_irqrestore(&bucket->lock, flags);
}

/* Who dirtied what a bio, queued then, writes of the page; false if that is not known. */
bool mostrace_dirtier_of(struct page *head, u64 queued_ns, struct mostrace_task *who)
{
	struct bucket *bucket = bucket_of(head);
	bool known = false;
	unsigned long flags;
	struct slot *slot;

	if (!slot_of(bucket, head))
		return false;
	raw_spin_lock_irqsave(&bucket->lock, flags);
	slot = slot_of(bucket, head);
	if (slot && is_of(slot, mostrace_page_mapping(head), mostrace_page_index(head))) {
		if (!mostrace_begin_told && slot->dirty.time_ns <= queued_ns)
			begin_slot(slot);
		/* Who dirtied it later did so for another bio. */
		known = slot->writing.pid && slot->writing.time_ns <= queued_ns;
		*who = slot->writing;
	}
	raw_spin_unlock_irqrestore(&bucket->lock, flags);
	return known;
}

int mostrace_dirtiers_alloc(void)
{
	int i;

	buckets = vzalloc(sizeof(*buckets) << BUCKET_BITS);
	if (!buckets)
		return -ENOMEM;
	for (i = 0; i < 1 << BUCKET_BITS; i++)
		raw_spin_lock_init(&buckets[i].lock);
	return 0;
}

void mostrace_dirtiers_free(void)
{
	vfree(buckets);
	buckets = NULL;
}
