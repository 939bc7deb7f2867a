// SPDX-License-Identifier: GPL-2.0-only
/*
 * A bio as it is recorded: who submits it is remembered at its Q, its entries are
 * made when its request is inserted or, where insertion was bypassed, issued, and it
 * is forgotten when it completes. A bio that is merged into a request after its
 * insertion is met when the request is issued.
 */
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/ktime.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include "count.h"
#include "direct.h"
#include "endio.h"
#include "journal.h"
#include "making.h"
#include "pages.h"
#include "record.h"
#include "ring.h"
#include "submitter.h"
#include "target.h"

#define BIOS_MAX 4096

bool mostrace_files_told;

static const struct mostrace_submitter nobody = {
	.direct_pos = MOSTRACE_NONE,
	.flags = MOSTRACE_NO_SUBMITTER,
};

static void remember_current(struct bio *bio, u64 now)
{
	struct mostrace_submitter who;

	/*
	 * What was told is of this bio only if it is of the kind that is told of: a bio
	 * that failed before its Q leaves its record to the next at its address.
	 */
	if (!mostrace_files_told || !mostrace_is_direct(bio) || !mostrace_recall(bio, &who) ||
	    who.queued) {
		who = nobody;
		mostrace_find_direct(bio, &who);
	}
	mostrace_task_is_current(&who.task, now);
	who.sector = bio->bi_iter.bi_sector;
	who.flags = 0;
	who.queued = true;
	mostrace_remember(bio, &who);
}

/* The kernel tells of direct IO that is about to be queued. */
void mostrace_bio_file(struct bio *bio, struct file *file, loff_t pos)
{
	struct mostrace_submitter who = nobody;

	if (!mostrace_device_of_bio_wanted(bio))
		return;
	who.direct_file = file;
	who.direct_pos = pos;
	mostrace_remember(bio, &who);
}

/* What a bio that had no Q of its own has of its parent; without one, nobody. */
static void inherit(struct bio *parent, u8 flags, struct mostrace_submitter *who)
{
	if (parent && mostrace_recall(parent, who) && who->queued)
		who->flags |= flags;
	else
		*who = nobody;
}

/* Makes the file entries of a bio, and says in its process entry what the data belongs to. */
static void put_data(const struct mostrace_making *m, const struct mostrace_submitter *who,
		     struct mostrace_process *p)
{
	if (mostrace_put_direct(m, who, &p->origin))
		return;
	if (mostrace_put_journal(m, p))
		p->origin = MOSTRACE_ORIGIN_JOURNAL;
	else
		p->origin = mostrace_put_pages(m, who->task.time_ns);
}

static void put_process(const struct mostrace_making *m, const struct mostrace_submitter *who)
{
	struct mostrace_process p = {
		.head = mostrace_head_of(m),
		.submit_ns = who->task.time_ns,
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
	/* An empty bio has no bvec to read. */
	if (bio_has_data(m->bio) && m->bio->bi_io_vec)
		put_data(m, who, &p);
	mostrace_put(&p.head);
}

/* Makes the entries of a bio, once in its life. */
static void record_bio(const struct mostrace_making *m)
{
	struct mostrace_submitter who;
	struct bio *root;

	/* What was not queued is of an earlier bio, that failed: its file may be closed. */
	if (!mostrace_recall_once(m->bio, &who) || !who.queued) {
		root = mostrace_root(m->bio);
		inherit(root != m->bio ? root : NULL, MOSTRACE_CHAINED, &who);
		who.recorded = true;
		who.queued = true;
		mostrace_remember(m->bio, &who);
	} else if (who.recorded) {
		return;
	}
	put_process(m, &who);
}

/* It is inserted or issued. */
void mostrace_request_reached(struct request *rq, u8 stage)
{
	struct mostrace_making m = {
		.target = mostrace_target_of_rq(rq),
		.now = ktime_get_ns(),
		.stage = stage,
	};
	int i;

	if (!m.target)
		return;
	rcu_read_lock();
	m.bio = rq->bio;
	for (i = 0; m.bio && i < BIOS_MAX; i++) {
		record_bio(&m);
		m.bio = m.bio->bi_next;
	}
	rcu_read_unlock();
	if (m.bio)
		mostrace_count(MOSTRACE_LOST_BIOS_CUT);
}

void mostrace_bio_queued(struct bio *bio)
{
	struct mostrace_making m = {
		.target = mostrace_target_of_bio(bio),
		.bio = bio,
		.now = ktime_get_ns(),
		.stage = MOSTRACE_QUEUE,
	};

	if (!m.target) {
		/* On another partition, whose completions are not looked at either. */
		if (mostrace_files_told)
			mostrace_forget(bio);
		return;
	}
	rcu_read_lock();
	remember_current(bio, m.now);
	/* An empty flush is never issued as itself. */
	if (!bio->bi_iter.bi_size)
		record_bio(&m);
	rcu_read_unlock();
}

/* Of a request, so many of the bytes that are left. */
void mostrace_request_completed(struct request *rq, unsigned int bytes)
{
	struct bio *bio = rq->bio;
	int i;

	if (!mostrace_target_of_rq(rq))
		return;
	for (i = 0; bio && i < BIOS_MAX && bio->bi_iter.bi_size <= bytes; i++) {
		bytes -= bio->bi_iter.bi_size;
		mostrace_forget(bio);
		bio = bio->bi_next;
	}
}

/*
 * The new bio is the front and its bi_private the original, which goes on as
 * the remainder and gets no second Q.
 */
void mostrace_bio_split(struct bio *split)
{
	struct mostrace_submitter who;

	if (!mostrace_target_of_bio(split))
		return;
	inherit(split->bi_private, 0, &who);
	/* The parent's own entry is not this bio's. */
	who.recorded = false;
	who.queued = true;
	mostrace_remember(split, &who);
}

/* A bio that had no request. */
void mostrace_bio_completed(struct bio *bio)
{
	mostrace_forget(bio);
}
