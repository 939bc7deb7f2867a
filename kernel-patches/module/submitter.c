// SPDX-License-Identifier: GPL-2.0-only
/*
 * The data of bios that is remembered for later. Bios queued for a device without requests are
 * remembered until they complete, because another bio may be made from them for a recorded disk. On
 * a kernel that reports the file of direct IO before the bio is queued, such bios are remembered
 * until then. The table has a fixed size: a bio whose bucket is full is counted and not remembered.
 *
 * There are no locks. A bio belongs to one task at a time, so no task reads what is remembered of
 * it while it is filled in, or while the bio completes; tasks compete only for the places of a
 * bucket.
 */
#include <linux/atomic.h>
#include <linux/hash.h>
#include <linux/vmalloc.h>
#include "count.h"
#include "submitter.h"

#define BUCKET_BITS 13
#define WAYS 8

struct bucket {
	const struct bio *bio[WAYS];
	struct mostrace_submitter who[WAYS];
};

const struct mostrace_submitter mostrace_nobody = {
	.direct_pos = MOSTRACE_NONE,
	.flags = MOSTRACE_NO_SUBMITTER,
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

/* Returns the bio's place, or otherwise one that was empty; -1 if there is none. */
static int take_way(struct bucket *bucket, const struct bio *bio)
{
	int way = way_of(bucket, bio);

	while (way < 0) {
		way = way_of(bucket, NULL);
		if (way < 0)
			return -1;
		if (cmpxchg(&bucket->bio[way], NULL, bio))
			way = -1;
	}
	return way;
}

void mostrace_remember(const struct bio *bio, const struct mostrace_submitter *who)
{
	struct bucket *bucket = bucket_of(bio);
	int way = take_way(bucket, bio);

	if (way < 0)
		mostrace_count(MOSTRACE_LOST_SUBMITTERS);
	else
		bucket->who[way] = *who;
}

/* Returns what is remembered of a bio, or NULL. */
const struct mostrace_submitter *mostrace_recall(const struct bio *bio)
{
	const struct bucket *bucket = bucket_of(bio);
	int way = way_of(bucket, bio);

	return way < 0 ? NULL : &bucket->who[way];
}

void mostrace_forget(const struct bio *bio)
{
	struct bucket *bucket = bucket_of(bio);
	int way = way_of(bucket, bio);

	if (way < 0)
		return;
	/* Pairs with the cmpxchg: what was read of it was read before. */
	smp_store_release(&bucket->bio[way], NULL);
}

int mostrace_submitters_alloc(void)
{
	buckets = vzalloc(sizeof(*buckets) << BUCKET_BITS);
	return buckets ? 0 : -ENOMEM;
}

void mostrace_submitters_free(void)
{
	vfree(buckets);
	buckets = NULL;
}
