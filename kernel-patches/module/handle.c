// SPDX-License-Identifier: GPL-2.0-only
/*
 * The handles of a journal. ext4 reports the inode for which it begins a handle and the function
 * that does; jbd2 reports the transaction that the handle joined and how many buffers it was the
 * first to modify. Each of these is reported when it is modified, so none is attributed to another
 * handle and MOSTRACE_HANDLE_OVERLAP is never needed.
 */
#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/jhash.h>
#include <linux/sched.h>
#include <linux/string.h>
#include "call.h"
#include "filesystems.h"
#include "handle.h"
#include "head.h"
#include "journal.h"
#include "ring.h"
#include "task.h"
#include "thread.h"

static atomic64_t last_id;

/* The filesystem, transaction and process whose handle was recorded last, by their hash. */
struct participant {
	dev_t s_dev;
	u32 tid;
	u32 tgid;
};

#define PARTICIPANT_BITS 10

static struct participant participants[1 << PARTICIPANT_BITS];

void mostrace_handles_reset(void)
{
	atomic64_set(&last_id, 0);
	memset(participants, 0, sizeof(participants));
}

static transaction_t *current_transaction(void)
{
	handle_t *handle = current->journal_info;

	return handle ? handle->h_transaction : NULL;
}

/* Returns the thread's handle, if ext4 or jbd2 has reported one; otherwise NULL. */
static struct mostrace_handle *handle_of(struct mostrace_thread *thread)
{
	return thread && thread->state != MOSTRACE_HANDLE_NONE ? &thread->handle : NULL;
}

static void tell_inode(struct mostrace_handle *handle, struct inode *inode)
{
	if (!inode || handle->ino)
		return;
	handle->ino = inode->i_ino;
	handle->generation = inode->i_generation;
}

/* ext4 is about to begin a handle; within another one it gets that one again. */
void mostrace_handle_prepared(dev_t s_dev, struct inode *inode, unsigned long function)
{
	struct mostrace_thread *thread;
	struct mostrace_call *call;

	if (!mostrace_filesystem_wanted(s_dev) || current->journal_info)
		return;
	thread = mostrace_thread_room();
	if (!thread)
		return;
	thread->state = MOSTRACE_HANDLE_PREPARED;
	thread->handle = (struct mostrace_handle){
		.function = function,
		.s_dev = s_dev,
	};
	call = mostrace_call_under_way(thread);
	/* The inode of an unlinked name is not the folder's, for which the handle begins. */
	if (call && call->kind == MOSTRACE_CALL_UNLINK && call->ino) {
		thread->handle.ino = call->ino;
		thread->handle.generation = call->generation;
	} else {
		tell_inode(&thread->handle, inode);
	}
}

/* ext4 marks an inode dirty in the handle. */
void mostrace_handle_marks(struct inode *inode)
{
	struct mostrace_handle *handle = handle_of(mostrace_thread());

	if (!handle)
		return;
	tell_inode(handle, inode);
	mostrace_call_renames(inode);
}

/* Records that the handle has joined a transaction. */
static void join(struct mostrace_thread *thread, u32 tid)
{
	struct mostrace_handle *handle = &thread->handle;

	handle->tid = tid;
	handle->id = atomic64_inc_return(&last_id);
	handle->named = 0;
}

void mostrace_handle_begun(dev_t s_dev, u32 tid, u16 type)
{
	struct mostrace_thread *thread;

	if (!mostrace_filesystem_wanted(s_dev) || !current_transaction())
		return;
	thread = mostrace_thread_room();
	if (!thread)
		return;
	/* A handle reserved for the end of IO is not announced by ext4. */
	if (thread->state != MOSTRACE_HANDLE_PREPARED || thread->handle.s_dev != s_dev)
		thread->handle = (struct mostrace_handle){ .function = MOSTRACE_NONE, .s_dev = s_dev };
	thread->state = MOSTRACE_HANDLE_OPEN;
	thread->handle.start_ns = ktime_get_ns();
	thread->handle.type = type;
	thread->handle.call = mostrace_kind_running(thread);
	join(thread, tid);
}

static void put(struct mostrace_handle *handle, u8 flags)
{
	struct mostrace_task task;

	mostrace_task_is_current(&task, 0);
	handle->head = mostrace_head_now(MOSTRACE_HANDLE, sizeof(*handle));
	handle->head.flags = flags;
	handle->pid = task.pid;
	handle->tgid = task.tgid;
	handle->uid = task.uid;
	memcpy(handle->comm, task.comm, sizeof(handle->comm));
	mostrace_put(&handle->head);
}

/* jbd2 does not report how many buffers it dirtied in the transaction that it leaves. */
void mostrace_handle_restarted(dev_t s_dev, u32 tid)
{
	struct mostrace_thread *thread = mostrace_thread();
	struct mostrace_handle *handle = handle_of(thread);

	if (!handle || handle->s_dev != s_dev || !current_transaction())
		return;
	put(handle, MOSTRACE_HANDLE_RESTARTED);
	join(thread, tid);
}

/*
 * The handle is the first in its transaction to modify a buffer, which belongs to the running
 * transaction or still to the committing one.
 */
void mostrace_handle_modifies(handle_t *of, struct journal_head *jh)
{
	struct mostrace_handle *handle = handle_of(mostrace_thread());
	struct mostrace_dirtied dirtied = { };

	if (!handle || of != current->journal_info)
		return;
	dirtied.head = mostrace_head_now(MOSTRACE_DIRTIED, sizeof(dirtied));
	dirtied.head.flags = jh->b_transaction == of->h_transaction ? MOSTRACE_DIRTIED_NEW :
								      MOSTRACE_DIRTIED_KEPT;
	dirtied.handle = handle->id;
	dirtied.tid = handle->tid;
	if (!mostrace_home_of(jh2bh(jh), mostrace_disk(), &dirtied.head.sector, &dirtied.home))
		return;
	dirtied.head.bytes = jh2bh(jh)->b_size;
	handle->named++;
	mostrace_put(&dirtied.head);
}

/*
 * Returns true if the handle is worth an entry. Most handles modify what another one of the
 * transaction modified already; of those, one per process is recorded to show that it took part. If
 * a process was forgotten, or is looked up on two CPUs at once, it is recorded again.
 */
static bool says_something(const struct mostrace_handle_end *end)
{
	struct participant now = { .s_dev = end->s_dev, .tid = end->tid, .tgid = current->tgid };
	struct participant *last;

	if (end->dirtied > 0 || end->sync)
		return true;
	last = &participants[jhash(&now, sizeof(now), 0) & ((1 << PARTICIPANT_BITS) - 1)];
	if (!memcmp(last, &now, sizeof(now)))
		return false;
	*last = now;
	return true;
}

static void put_ended(struct mostrace_handle *handle, const struct mostrace_handle_end *end, u8 flags)
{
	if (!says_something(end))
		return;
	if (current->flags & PF_KTHREAD)
		flags |= MOSTRACE_HANDLE_KERNEL;
	if (end->sync)
		flags |= MOSTRACE_HANDLE_SYNC;
	handle->requested = end->requested;
	handle->dirtied = max(end->dirtied, 0);
	put(handle, flags);
}

/* Records a handle that was begun before the recording. */
static void put_unseen(const struct mostrace_handle_end *end)
{
	struct mostrace_handle unseen = {
		.id = atomic64_inc_return(&last_id),
		.function = MOSTRACE_NONE,
		.s_dev = end->s_dev,
		.tid = end->tid,
		.type = end->type,
	};

	put_ended(&unseen, end, MOSTRACE_HANDLE_UNSEEN);
}

/*
 * A call with a path involves the filesystem if it joined the journal. It asks for durability if its
 * handle does.
 */
static void tell_call(struct mostrace_thread *thread, bool sync)
{
	struct mostrace_call *call = mostrace_call_under_way(thread);
	const struct mostrace_handle *handle = &thread->handle;

	if (!call)
		return;
	thread->is_ours = true;
	thread->asks |= sync;
	/* For a rename this is the folder. */
	if (!call->ino && call->kind != MOSTRACE_CALL_RENAME) {
		call->ino = handle->ino;
		call->generation = handle->generation;
	}
	call->s_dev = handle->s_dev;
}

/* The last user of the handle ends it; it is still the task's current one. */
void mostrace_handle_ended(const struct mostrace_handle_end *end)
{
	struct mostrace_thread *thread;

	if (!mostrace_filesystem_wanted(end->s_dev) || !current_transaction())
		return;
	thread = mostrace_thread();
	if (!thread || thread->state != MOSTRACE_HANDLE_OPEN || thread->handle.tid != end->tid) {
		put_unseen(end);
		return;
	}
	tell_call(thread, end->sync);
	put_ended(&thread->handle, end, 0);
	thread->state = MOSTRACE_HANDLE_NONE;
	mostrace_thread_settle(thread);
}
