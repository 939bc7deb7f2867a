// SPDX-License-Identifier: GPL-2.0-only
/*
 * A bio's entries are made when it is queued. The current task is then its submitter, unless the
 * bio was made from another one (dm) or was delayed (blk-throttle). The owner of its pages is
 * known; the bio is not yet split or merged; and this happens once in its life, even if a disk has
 * no requests.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/ktime.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include "clone.h"
#include "compat.h"
#include "direct.h"
#include "endio.h"
#include "journal.h"
#include "making.h"
#include "pages.h"
#include "record.h"
#include "ring.h"
#include "submitter.h"
#include "target.h"

bool mostrace_files_told;

/*
 * Returns true if the current task queues a bio of another task, because blk-throttle delayed it.
 */
static bool is_throttled(void)
{
	struct work_struct *work;
	work_func_t function;

	if (!(current->flags & PF_WQ_WORKER))
		return false;
	work = current_work();
	return work && mostrace_peek(&function, &work->func) &&
	       mostrace_endio_of(function) == MOSTRACE_WORK_THROTTLE;
}

/*
 * Finds the file and position of direct IO. What the kernel reported belongs to this bio only if
 * that was after the last bio at its address was queued: a bio that fails before it is queued
 * leaves its data to the next one at that address. While a bio is delayed, iomap continues with the
 * next position.
 */
static void find_direct(struct mostrace_submitter *who, struct bio *bio, bool throttled)
{
	const struct mostrace_submitter *told;

	if (!mostrace_is_direct(mostrace_endio_of(bio->bi_end_io)))
		return;
	told = mostrace_files_told ? mostrace_recall(bio) : NULL;
	if (told && !told->queued) {
		who->direct_file = told->direct_file;
		who->direct_pos = told->direct_pos;
	} else {
		mostrace_find_direct(bio, who);
		if (throttled)
			who->direct_pos = MOSTRACE_NONE;
	}
}

/* Stores where a bio's data begins now. */
static void take_data(struct mostrace_submitter *who, struct bio *bio)
{
	/* An empty bio has no vector to read. */
	who->bvec = bio_has_data(bio) && bio->bi_io_vec ? &bio->bi_io_vec[bio->bi_iter.bi_idx] :
							  NULL;
	who->bvec_done = bio->bi_iter.bi_bvec_done;
}

/* Finds the submitter of a bio that is being queued. */
static void find_submitter(struct mostrace_submitter *who, struct bio *bio, u64 now)
{
	bool inherited = mostrace_inherit(who, bio), throttled;

	if (!inherited) {
		throttled = is_throttled();
		*who = mostrace_nobody;
		who->root = mostrace_root(bio);
		who->task.time_ns = now;
		find_direct(who, bio, throttled);
		/* A thread of dm's passes on what others submitted. */
		if (!throttled && !(mostrace_is_clone(bio) && current->flags & PF_KTHREAD)) {
			mostrace_task_is_current(&who->task, now);
			who->flags = current->flags & PF_KTHREAD ? MOSTRACE_KERNEL_THREAD : 0;
		}
	}
	take_data(who, bio);
	who->queued = true;
}

/* The kernel reports direct IO that is about to be queued. */
void mostrace_bio_file(struct bio *bio, struct file *file, loff_t pos)
{
	struct mostrace_submitter who = mostrace_nobody;

	if (!mostrace_device_of_bio_wanted(bio) && !mostrace_is_bio_based(mostrace_bio_disk(bio)))
		return;
	who.direct_file = file;
	who.direct_pos = pos;
	mostrace_remember(bio, &who);
}

/* Makes the file entries of a bio, and sets the owner of its data in its process entry. */
static void put_data(const struct mostrace_making *m, const struct mostrace_submitter *who,
		     struct mostrace_process *p)
{
	if (mostrace_put_direct(m, who, &p->origin))
		return;
	if (mostrace_put_journal(m, who->root, p))
		p->origin = MOSTRACE_ORIGIN_JOURNAL;
	else
		p->origin = mostrace_put_pages(m, who);
}

static void record(const struct mostrace_making *m, const struct mostrace_submitter *who)
{
	struct mostrace_process p = {
		.head = mostrace_head_of(m),
		.submit_ns = m->now,
		.home_sector = MOSTRACE_NONE,
		.pid = who->task.pid,
		.tgid = who->task.tgid,
		.uid = who->task.uid,
		.opf = (__force __u32)m->bio->bi_opf,
		.origin = MOSTRACE_ORIGIN_EMPTY,
	};

	p.head.type = MOSTRACE_PROCESS;
	p.head.size = sizeof(p);
	p.head.flags = who->flags;
	memcpy(p.comm, who->task.comm, sizeof(p.comm));
	if (who->bvec)
		put_data(m, who, &p);
	mostrace_put(&p.head);
}

void mostrace_bio_queued(struct bio *bio)
{
	bool bio_based = mostrace_is_bio_based(mostrace_bio_disk(bio));
	struct mostrace_making m = {
		.target = mostrace_target_of_bio(bio),
		.bio = bio,
	};
	struct mostrace_submitter who;

	if (m.target || bio_based) {
		m.now = ktime_get_ns();
		rcu_read_lock();
		find_submitter(&who, bio, m.now);
		if (m.target)
			record(&m, &who);
		rcu_read_unlock();
	}
	if (bio_based)
		mostrace_remember(bio, &who);
	else if (mostrace_files_told)
		mostrace_forget(bio);
}

/*
 * A bio that was queued for a device without requests and is passed on as it is (md, NVMe
 * multipath) is not queued again.
 */
void mostrace_bio_remapped(struct bio *bio, dev_t from)
{
	struct mostrace_making m = { .bio = bio };
	const struct mostrace_submitter *first;
	struct mostrace_submitter who;

	if (!bio_flagged(bio, BIO_TRACE_COMPLETION) || !mostrace_is_at_disk(bio, from))
		return;
	m.target = mostrace_target_of_bio(bio);
	if (m.target) {
		m.now = ktime_get_ns();
		rcu_read_lock();
		first = mostrace_recall(bio);
		if (first && first->queued) {
			who = *first;
			who.direct_pos = mostrace_position(first, bio);
			take_data(&who, bio);
		} else {
			find_submitter(&who, bio, m.now);
		}
		record(&m, &who);
		rcu_read_unlock();
	}
	/* It will complete with a request. */
	if (!mostrace_is_bio_based(mostrace_bio_disk(bio)))
		mostrace_forget(bio);
}

/*
 * The new bio is the front part; its bi_private is the original, which continues as the remainder.
 */
void mostrace_bio_split(struct bio *split)
{
	struct mostrace_submitter who;

	/* dm may make clones of it. */
	if (!mostrace_is_bio_based(mostrace_bio_disk(split)) || !mostrace_inherit(&who, split))
		return;
	take_data(&who, split);
	mostrace_remember(split, &who);
}

/* A bio that had no request has ended. */
void mostrace_bio_completed(struct bio *bio)
{
	mostrace_forget(bio);
}
