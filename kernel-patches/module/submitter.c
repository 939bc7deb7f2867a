// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is remembered of bios: of those that are queued to a device without requests, of
 * which another may be made for a disk that is recorded, until they complete; and of direct
 * IO, on a kernel that tells its file before its Q, until then. The table has a fixed
 * size: a bio that finds its bucket full is counted and forgotten.
 *
 * There are no locks. A bio is one task's at a time, so nobody asks for what is
 * remembered of it while that is filled in, or while the bio completes; what is
 * contended for are the places of a bucket.
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

/* That of the bio, or else one that was empty; -1 if none is. */
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

/* What is remembered of a bio, or NULL. */
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
