// SPDX-License-Identifier: GPL-2.0-only
/*
 * What each thread has under way: a system call, a handle. The table has a fixed size. As long as a thread has
 * something under way, its slot is its own, and no other reads or changes it.
 */
#include <linux/hash.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/vmalloc.h>
#include "count.h"
#include "thread.h"

#define BUCKET_BITS 9
#define WAYS 8

struct bucket {
	raw_spinlock_t lock;
	struct mostrace_thread slots[WAYS];
};

static struct bucket *buckets;

static struct bucket *bucket_of(const struct task_struct *task)
{
	return &buckets[hash_ptr(task, BUCKET_BITS)];
}

/* The owner is looked at again: an idle slot may be taken by another thread between. */
static bool is_mine(const struct mostrace_thread *thread)
{
	if (READ_ONCE(thread->owner) != current || !READ_ONCE(thread->taken))
		return false;
	smp_rmb();	/* pairs with take() */
	return READ_ONCE(thread->owner) == current;
}

/* The current thread's; NULL if it has nothing under way. */
struct mostrace_thread *mostrace_thread(void)
{
	struct bucket *bucket = bucket_of(current);
	int i;

	for (i = 0; i < WAYS; i++)
		if (is_mine(&bucket->slots[i]))
			return &bucket->slots[i];
	return NULL;
}

static struct mostrace_thread *take(struct bucket *bucket)
{
	struct mostrace_thread *thread = NULL;
	unsigned long flags;
	int i;

	raw_spin_lock_irqsave(&bucket->lock, flags);
	for (i = 0; i < WAYS && !thread; i++)
		if (!bucket->slots[i].taken)
			thread = &bucket->slots[i];
	if (thread) {
		WRITE_ONCE(thread->owner, current);
		smp_wmb();	/* pairs with is_mine() */
		WRITE_ONCE(thread->taken, true);
		thread->call.kind = MOSTRACE_CALL_OTHER;
		thread->state = MOSTRACE_HANDLE_NONE;
	}
	raw_spin_unlock_irqrestore(&bucket->lock, flags);
	return thread;
}

/* The current thread's, made if it has none; NULL, and counted, if there is no room. */
struct mostrace_thread *mostrace_thread_room(void)
{
	struct mostrace_thread *thread = mostrace_thread();

	if (!thread)
		thread = take(bucket_of(current));
	if (!thread)
		mostrace_count(MOSTRACE_LOST_CAUSES_TASKS);
	return thread;
}

/* Something of the thread's ended: without anything more its slot is anybody's. */
void mostrace_thread_settle(struct mostrace_thread *thread)
{
	if (thread->call.kind == MOSTRACE_CALL_OTHER && thread->state == MOSTRACE_HANDLE_NONE)
		WRITE_ONCE(thread->taken, false);
}

int mostrace_threads_alloc(void)
{
	int i;

	buckets = vzalloc(sizeof(*buckets) << BUCKET_BITS);
	if (!buckets)
		return -ENOMEM;
	for (i = 0; i < 1 << BUCKET_BITS; i++)
		raw_spin_lock_init(&buckets[i].lock);
	return 0;
}

void mostrace_threads_free(void)
{
	vfree(buckets);
	buckets = NULL;
}
