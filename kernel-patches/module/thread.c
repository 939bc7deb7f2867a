// SPDX-License-Identifier: GPL-2.0-only
/*
 * The system call and the handle that each thread is in. The table has a fixed size. As long as a
 * thread is in a call or a handle, its slot belongs to it, and no other thread reads or changes it.
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

/* The owner is checked twice, because another thread may take an idle slot in between. */
static bool is_mine(const struct mostrace_thread *thread)
{
	if (READ_ONCE(thread->owner) != current || !READ_ONCE(thread->taken))
		return false;
	smp_rmb();	/* pairs with take() */
	return READ_ONCE(thread->owner) == current;
}

/* Returns the current thread's slot; NULL if it is in no call and no handle. */
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

/*
 * Returns the current thread's slot, and takes one if it has none; NULL, and counted, if there is
 * no room.
 */
struct mostrace_thread *mostrace_thread_room(void)
{
	struct mostrace_thread *thread = mostrace_thread();

	if (!thread)
		thread = take(bucket_of(current));
	if (!thread)
		mostrace_count(MOSTRACE_LOST_CAUSES_TASKS);
	return thread;
}

/* A call or a handle of the thread has ended: if it is in neither now, its slot becomes free. */
void mostrace_thread_settle(struct mostrace_thread *thread)
{
	if (thread->call.kind == MOSTRACE_CALL_OTHER && thread->state == MOSTRACE_HANDLE_NONE)
		WRITE_ONCE(thread->taken, false);
}

/* The thread is no more; it may have ended with a slot taken, for a handle that was announced and did not begin. */
void mostrace_thread_ended(const struct task_struct *task)
{
	struct bucket *bucket = bucket_of(task);
	unsigned long flags;
	int i;

	raw_spin_lock_irqsave(&bucket->lock, flags);
	for (i = 0; i < WAYS; i++)
		if (bucket->slots[i].owner == task)
			WRITE_ONCE(bucket->slots[i].taken, false);
	raw_spin_unlock_irqrestore(&bucket->lock, flags);
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
