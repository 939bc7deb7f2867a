// SPDX-License-Identifier: GPL-2.0-only
/*
 * The dirtier of a page of the page cache, or of a block in a device's page that several blocks
 * share: the task that made it dirty after it was clean. It is remembered until the page is written
 * for the next time or leaves the cache. A task that should write the page out, could not write all
 * of it, and marked it dirty again is not its dirtier. The table has a fixed size: the entry of a
 * page that was written is replaced first, and a page for which there is no room is counted.
 *
 * A page may be dirtied again while it is being written, so the dirtier of what is being written is
 * kept apart from the dirtier of what is dirty now. On a kernel with the tracepoint
 * writeback_start_folio, that event moves the one to the other. Without it this is done when the
 * bio's entries are made, a moment later: a page that another task dirtied in between has two
 * dirtiers, and then neither is recorded.
 */
#include <linux/buffer_head.h>
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

struct slot {
	struct mostrace_dirt dirt;
	struct mostrace_task dirty;	/* pid 0: not dirtied since writing began */
	struct mostrace_task writing;
	bool doubt;	/* other tasks than `dirty` may have dirtied it too */
};

struct bucket {
	raw_spinlock_t lock;
	struct slot slots[WAYS];
};

bool mostrace_begin_told;

static struct bucket *buckets;

static struct bucket *bucket_of(const void *key)
{
	return &buckets[hash_ptr(key, BUCKET_BITS)];
}

static struct slot *slot_of(struct bucket *bucket, const void *key)
{
	int i;

	for (i = 0; i < WAYS; i++)
		if (READ_ONCE(bucket->slots[i].dirt.key) == key)
			return &bucket->slots[i];
	return NULL;
}

/* Returns a slot that is free, or otherwise one whose page was written. */
static struct slot *empty_slot(struct bucket *bucket)
{
	struct slot *slot = slot_of(bucket, NULL);
	int i;

	for (i = 0; i < WAYS && !slot; i++)
		if (!bucket->slots[i].dirty.pid)
			slot = &bucket->slots[i];
	return slot;
}

static bool is_of(const struct slot *slot, const struct mostrace_dirt *dirt)
{
	return slot->dirt.of == dirt->of && slot->dirt.index == dirt->index;
}

static bool is_flusher(void)
{
	struct work_struct *work;

	if (!(current->flags & PF_WQ_WORKER))
		return false;
	work = current_work();
	return work && mostrace_endio_of(work->func) == MOSTRACE_WORK_FLUSHER;
}

/* A kernel thread's name is the one that the kernel gave it. */
static bool is_jbd2(void)
{
	return current->flags & PF_KTHREAD && strstarts(current->comm, "jbd2/");
}

/*
 * Returns true if the current task writes the inode's pages for others. It marks a page dirty again
 * if it cannot write it, or cannot write all of it (some of several blocks have no place on the
 * disk yet). Metadata is marked dirty only by jbd2.
 */
static bool is_writeback(const struct inode *inode)
{
	return is_flusher() || (!mostrace_is_bdev(inode) && is_jbd2());
}

/*
 * Writeback that cannot write a page marks it dirty again, but a flusher did not make the data. Any
 * other task may have made it, or may be the one that calls fsync: that is not known.
 */
static void dirty_again(struct slot *slot, const struct mostrace_task *who)
{
	if (current->flags & PF_KTHREAD || slot->dirty.pid == who->pid)
		return;
	slot->doubt = true;
}

/* Returns true if the slot has the place's dirtier. */
static bool has_dirtier(const struct slot *slot, const struct mostrace_dirt *dirt)
{
	return slot->dirt.key == dirt->key && is_of(slot, dirt) && slot->dirty.pid;
}

static void dirty_slot(struct slot *slot, const struct mostrace_dirt *dirt,
		       const struct mostrace_task *who)
{
	if (has_dirtier(slot, dirt)) {
		dirty_again(slot, who);
		return;
	}
	if (slot->dirt.key != dirt->key || !is_of(slot, dirt))
		slot->writing.pid = 0;
	slot->dirt.of = dirt->of;
	slot->dirt.index = dirt->index;
	slot->dirt.is_buffer = dirt->is_buffer;
	slot->dirty = *who;
	slot->doubt = false;
	WRITE_ONCE(slot->dirt.key, dirt->key);
}

/* Returns true if the current task dirties the inode's pages for its own purposes. */
static bool is_dirtier(struct inode *inode)
{
	return inode && mostrace_inode_wanted(inode) && !is_writeback(inode);
}

/* Records that the current task made dirty what was clean. */
static void put_dirt(const struct mostrace_dirt *dirt)
{
	struct mostrace_task who;
	struct bucket *bucket;
	unsigned long flags;
	struct slot *slot;

	mostrace_task_is_current(&who, ktime_get_ns());
	/* The idle task, in an interrupt: not a dirtier. */
	if (!who.pid)
		return;
	bucket = bucket_of(dirt->key);
	raw_spin_lock_irqsave(&bucket->lock, flags);
	slot = slot_of(bucket, dirt->key);
	if (!slot)
		slot = empty_slot(bucket);
	if (slot)
		dirty_slot(slot, dirt, &who);
	raw_spin_unlock_irqrestore(&bucket->lock, flags);
	if (!slot)
		mostrace_count(MOSTRACE_LOST_DIRTIERS);
}

struct mostrace_dirt mostrace_page_dirt(struct page *head)
{
	return (struct mostrace_dirt){
		.key = head,
		.of = mostrace_page_mapping(head),
		.index = mostrace_page_index(head),
	};
}

/* Identifies a buffer; `at` is its address. */
struct mostrace_dirt mostrace_buffer_dirt(const void *at, const struct buffer_head *bh)
{
	return (struct mostrace_dirt){
		.key = at,
		.of = bh->b_bdev,
		.index = bh->b_blocknr,
		.is_buffer = true,
	};
}

/* Returns true if other blocks may share the buffer's page. */
bool mostrace_shares_page(const struct buffer_head *bh)
{
	return bh->b_size < PAGE_SIZE;
}

/* Records that the current task makes a clean page dirty. */
void mostrace_dirty(struct page *head, const struct address_space *mapping)
{
	struct mostrace_dirt dirt;

	if (!is_dirtier(mapping->host))
		return;
	dirt = mostrace_page_dirt(head);
	dirt.of = mapping;
	put_dirt(&dirt);
}

/*
 * Records that the current task makes a clean buffer dirty; this is called for a dirty one, too. A
 * file's contents are tracked by page.
 */
void mostrace_dirty_buffer(struct buffer_head *bh)
{
	const struct address_space *mapping;
	struct mostrace_dirt dirt;

	if (buffer_dirty(bh) || !mostrace_shares_page(bh))
		return;
	mapping = mostrace_page_mapping(bh->b_page);
	if (!mapping || !mapping->host || !mostrace_is_bdev(mapping->host) ||
	    !is_dirtier(mapping->host))
		return;
	dirt = mostrace_buffer_dirt(bh, bh);
	put_dirt(&dirt);
}

/* The page leaves the cache, either written or discarded; its memory will be reused. */
void mostrace_drop(const struct page *head)
{
	struct bucket *bucket = bucket_of(head);
	unsigned long flags;
	struct slot *slot;

	/* A page is not added while it leaves the cache, so this needs no lock. */
	if (!slot_of(bucket, head))
		return;
	raw_spin_lock_irqsave(&bucket->lock, flags);
	slot = slot_of(bucket, head);
	if (slot) {
		WRITE_ONCE(slot->dirt.key, NULL);
		slot->dirty.pid = 0;
		slot->writing.pid = 0;
	}
	raw_spin_unlock_irqrestore(&bucket->lock, flags);
}

/* If the page was written in part, the dirtier of the rest is set already. */
static void begin_slot(struct slot *slot)
{
	if (!slot->dirty.pid)
		return;
	slot->writing = slot->dirty;
	if (slot->doubt)
		slot->writing.pid = 0;
	slot->dirty.pid = 0;
}

/* Notes that the write of the page's present contents begins. */
void mostrace_begin_write(struct page *head)
{
	struct bucket *bucket = bucket_of(head);
	unsigned long flags;
	struct slot *slot;

	/* A page is not added while it begins to be written, so this needs no lock. */
	if (!slot_of(bucket, head))
		return;
	raw_spin_lock_irqsave(&bucket->lock, flags);
	slot = slot_of(bucket, head);
	if (slot)
		begin_slot(slot);
	raw_spin_unlock_irqrestore(&bucket->lock, flags);
}

/* Finds the dirtier of what a bio, queued at that time, writes of it; false if it is not known. */
bool mostrace_dirtier_of(const struct mostrace_dirt *dirt, u64 queued_ns,
			 struct mostrace_task *who)
{
	struct bucket *bucket = bucket_of(dirt->key);
	bool known = false;
	unsigned long flags;
	struct slot *slot;

	if (!slot_of(bucket, dirt->key))
		return false;
	raw_spin_lock_irqsave(&bucket->lock, flags);
	slot = slot_of(bucket, dirt->key);
	if (slot && is_of(slot, dirt)) {
		/* For a buffer no kernel reports when writing begins. */
		if ((!mostrace_begin_told || dirt->is_buffer) && slot->dirty.time_ns <= queued_ns)
			begin_slot(slot);
		/* A task that dirtied it later did so for another bio. */
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
