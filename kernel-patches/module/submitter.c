// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who submitted a bio: remembered at block_bio_queue, which runs in the
 * submitting task, until the bio completes, in whatever context. The table has
 * a fixed size: a bio that finds its bucket full is counted and forgotten.
 */
#include <linux/hash.h>
#include <linux/spinlock.h>
#include <linux/vmalloc.h>
#include "count.h"
#include "submitter.h"

#define BUCKET_BITS 13
#define WAYS 8

struct bucket {
	raw_spinlock_t lock;
	const struct bio *bio[WAYS];
	struct mostrace_submitter who[WAYS];
};

static struct bucket *buckets;

static struct bucket *bucket_of(const struct bio *bio)
{
	return &buckets[hash_ptr(bio, BUCKET_BITS)];
}

static int way_of(const struct bucket *bucket, const struct bio *bio)
{
	int way;

	for (way = 0; way < WAYS; way++)
		if (READ_ONCE(bucket->bio[way]) == bio)
			return way;
	return -1;
}

/* That of the bio, or else an empty one. */
static int way_for(const struct bucket *bucket, const struct bio *bio)
{
	const struct bio *there;
	int way, empty = -1;

	for (way = 0; way < WAYS; way++) {
		there = READ_ONCE(bucket->bio[way]);
		if (there == bio)
			return way;
		if (empty < 0 && !there)
			empty = way;
	}
	return empty;
}

void mostrace_remember(struct bio *bio, const struct mostrace_submitter *who)
{
	struct bucket *bucket = bucket_of(bio);
	unsigned long flags;
	int way;

	raw_spin_lock_irqsave(&bucket->lock, flags);
	way = way_for(bucket, bio);
	if (way >= 0) {
		bucket->who[way] = *who;
		WRITE_ONCE(bucket->bio[way], bio);
	}
	raw_spin_unlock_irqrestore(&bucket->lock, flags);
	if (way < 0)
		mostrace_count(MOSTRACE_LOST_SUBMITTERS);
}

static bool recall(struct bio *bio, struct mostrace_submitter *who, bool once)
{
	struct bucket *bucket = bucket_of(bio);
	unsigned long flags;
	int way;

	raw_spin_lock_irqsave(&bucket->lock, flags);
	way = way_of(bucket, bio);
	if (way >= 0) {
		*who = bucket->who[way];
		bucket->who[way].recorded |= once;
	}
	raw_spin_unlock_irqrestore(&bucket->lock, flags);
	return way >= 0;
}

bool mostrace_recall(struct bio *bio, struct mostrace_submitter *who)
{
	return recall(bio, who, false);
}

bool mostrace_recall_once(struct bio *bio, struct mostrace_submitter *who)
{
	return recall(bio, who, true);
}

void mostrace_forget(struct bio *bio)
{
	struct bucket *bucket = bucket_of(bio);
	int way = way_of(bucket, bio);

	/* Without the lock: nobody asks for a bio, or puts it in, while it completes. */
	if (way >= 0)
		WRITE_ONCE(bucket->bio[way], NULL);
}

int mostrace_submitters_alloc(void)
{
	int i;

	buckets = vzalloc(sizeof(*buckets) << BUCKET_BITS);
	if (!buckets)
		return -ENOMEM;
	for (i = 0; i < 1 << BUCKET_BITS; i++)
		raw_spin_lock_init(&buckets[i].lock);
	return 0;
}

void mostrace_submitters_free(void)
{
	vfree(buckets);
	buckets = NULL;
}
