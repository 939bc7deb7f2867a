// SPDX-License-Identifier: GPL-2.0-only
/*
 * The probes: remember who submits a bio (block_bio_queue), make its entries
 * when its request is inserted or, where insertion was bypassed, issued, and
 * forget it when it completes. A bio that is merged into a request after its
 * insertion is met when the request is issued.
 */
#include <linux/build_bug.h>
#include <linux/ktime.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <trace/events/block.h>
#include <trace/events/writeback.h>
#include "compat.h"
#include "internal.h"

#define BIOS_MAX 4096

/* Whether the kernel tells the file of a bio before its Q. */
static bool files_told;

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
	if (!files_told || !mostrace_is_direct(bio) || !mostrace_recall(bio, &who) || who.queued) {
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
static void remember_file(struct bio *bio, struct file *file, loff_t pos)
{
	struct mostrace_submitter who = nobody;

	if (!mostrace_device_of_bio_wanted(bio))
		return;
	who.direct_file = file;
	who.direct_pos = pos;
	mostrace_remember(bio, &who);
}

/* Gives a bio a record of its own: a copy of its parent's, or nobody's. */
static void inherit(struct bio *bio, struct bio *parent, u8 flags, struct mostrace_submitter *who)
{
	if (parent && mostrace_recall(parent, who) && who->queued)
		who->flags |= flags;
	else
		*who = nobody;
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
		mostrace_find_owner(m, who, &p);
	mostrace_put(&p.head);
}

/* Makes the entries of a bio, once in its life. */
static void record_bio(const struct mostrace_making *m)
{
	struct mostrace_submitter who;
	struct bio *root;

	/* One that failed before its Q has left a file that may be gone. */
	if (!mostrace_recall_once(m->bio, &who) || !who.queued) {
		root = mostrace_root(m->bio);
		inherit(m->bio, root != m->bio ? root : NULL, MOSTRACE_CHAINED, &who);
		who.recorded = true;
		who.queued = true;
		mostrace_remember(m->bio, &who);
	} else if (who.recorded) {
		return;
	}
	put_process(m, &who);
}

static void record_request(struct request *rq, u8 stage)
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

static void queue_bio(struct bio *bio)
{
	struct mostrace_making m = {
		.target = mostrace_target_of_bio(bio),
		.bio = bio,
		.now = ktime_get_ns(),
		.stage = MOSTRACE_QUEUE,
	};

	if (!m.target) {
		/* On another partition: nor will its end be seen. */
		if (files_told)
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

static void complete_request(struct request *rq, unsigned int bytes)
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
static void split_bio(struct bio *split)
{
	struct mostrace_submitter who;

	if (!mostrace_target_of_bio(split))
		return;
	inherit(split, split->bi_private, 0, &who);
	/* The parent's own entry is not this bio's. */
	who.recorded = false;
	who.queued = true;
	mostrace_remember(split, &who);
}

/*
 * What a tracepoint hands over differs between kernels, and a probe must be of
 * exactly its type (CFI): both are here, and the compiler picks the one that
 * fits. 5.11 to 5.13: the queue, first until then, was taken away.
 */
static void __maybe_unused on_bio_queue_q(void *data, struct request_queue *q, struct bio *bio)
{
	queue_bio(bio);
}

static void __maybe_unused on_bio_queue(void *data, struct bio *bio)
{
	queue_bio(bio);
}

static void __maybe_unused on_split_q(void *data, struct request_queue *q, struct bio *bio,
				      unsigned int new_sector)
{
	split_bio(bio);
}

static void __maybe_unused on_split(void *data, struct bio *bio, unsigned int new_sector)
{
	split_bio(bio);
}

static void __maybe_unused on_rq_insert_q(void *data, struct request_queue *q, struct request *rq)
{
	record_request(rq, MOSTRACE_INSERT);
}

static void __maybe_unused on_rq_insert(void *data, struct request *rq)
{
	record_request(rq, MOSTRACE_INSERT);
}

static void __maybe_unused on_rq_issue_q(void *data, struct request_queue *q, struct request *rq)
{
	record_request(rq, MOSTRACE_ISSUE);
}

static void __maybe_unused on_rq_issue(void *data, struct request *rq)
{
	record_request(rq, MOSTRACE_ISSUE);
}

/* 5.16 (8a7d267b4a2c): the error is a blk_status_t. */
static void __maybe_unused on_rq_complete_int(void *data, struct request *rq, int error,
					      unsigned int bytes)
{
	complete_request(rq, bytes);
}

static void __maybe_unused on_rq_complete(void *data, struct request *rq, blk_status_t error,
					  unsigned int bytes)
{
	complete_request(rq, bytes);
}

/* 5.18 (203a31516616): a page became a folio. */
static void __maybe_unused on_dirty_page(void *data, struct page *page,
					 struct address_space *mapping)
{
	mostrace_dirty(mostrace_head(page), mapping);
}

/* The series' own (../series). */
static void on_bio_file(void *data, struct bio *bio, struct file *file, loff_t pos)
{
	remember_file(bio, file, pos);
}

/* The series' own too. */
static void __maybe_unused on_start_page(void *data, struct page *page)
{
	mostrace_begin_write(mostrace_head(page));
}

#ifdef MOSTRACE_DIRTY_FOLIO
static void on_dirty_folio(void *data, struct folio *folio, struct address_space *mapping)
{
	mostrace_dirty(&folio->page, mapping);
}

static void on_start_folio(void *data, struct folio *folio)
{
	mostrace_begin_write(&folio->page);
}
#endif

/* Fires only for bios that did not complete through a request. */
static void on_bio_complete(void *data, struct request_queue *q, struct bio *bio)
{
	mostrace_forget(bio);
}

#define TAKES(tp, ...) __builtin_types_compatible_p(typeof(trace_##tp), void (__VA_ARGS__))

#define BIO_QUEUE_Q	TAKES(block_bio_queue, struct request_queue *, struct bio *)
#define SPLIT_Q		TAKES(block_split, struct request_queue *, struct bio *, unsigned int)
#define RQ_INSERT_Q	TAKES(block_rq_insert, struct request_queue *, struct request *)
#define RQ_ISSUE_Q	TAKES(block_rq_issue, struct request_queue *, struct request *)
#define RQ_COMPLETE_INT	TAKES(block_rq_complete, struct request *, int, unsigned int)

static_assert(BIO_QUEUE_Q || TAKES(block_bio_queue, struct bio *));
static_assert(SPLIT_Q || TAKES(block_split, struct bio *, unsigned int));
static_assert(RQ_INSERT_Q || TAKES(block_rq_insert, struct request *));
static_assert(RQ_ISSUE_Q || TAKES(block_rq_issue, struct request *));
static_assert(RQ_COMPLETE_INT ||
	      TAKES(block_rq_complete, struct request *, blk_status_t, unsigned int));
static_assert(TAKES(block_bio_complete, struct request_queue *, struct bio *));
#ifdef MOSTRACE_DIRTY_FOLIO
static_assert(TAKES(writeback_dirty_folio, struct folio *, struct address_space *));
#else
static_assert(TAKES(writeback_dirty_page, struct page *, struct address_space *));
#endif

static struct probe {
	const char *name;
	void *function;
	bool optional;	/* without it less is known */
	struct tracepoint *tp;
} probes[] = {
	{ "block_bio_queue",
	  __builtin_choose_expr(BIO_QUEUE_Q, on_bio_queue_q, on_bio_queue) },
	{ "block_split", __builtin_choose_expr(SPLIT_Q, on_split_q, on_split) },
	{ "block_rq_insert",
	  __builtin_choose_expr(RQ_INSERT_Q, on_rq_insert_q, on_rq_insert) },
	{ "block_rq_issue", __builtin_choose_expr(RQ_ISSUE_Q, on_rq_issue_q, on_rq_issue) },
	{ "block_rq_complete",
	  __builtin_choose_expr(RQ_COMPLETE_INT, on_rq_complete_int, on_rq_complete) },
	{ "block_bio_complete", on_bio_complete },
	{ "block_bio_file", on_bio_file, .optional = true },
#ifdef MOSTRACE_DIRTY_FOLIO
	{ "writeback_dirty_folio", on_dirty_folio, .optional = true },
	{ "writeback_start_folio", on_start_folio, .optional = true },
#else
	{ "writeback_dirty_page", on_dirty_page, .optional = true },
	{ "writeback_start_page", on_start_page, .optional = true },
#endif
};

static void find_probe(struct tracepoint *tp, void *priv)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		if (!strcmp(tp->name, probes[i].name))
			probes[i].tp = tp;
}

int mostrace_probes_find(void)
{
	int i;

	for_each_kernel_tracepoint(find_probe, NULL);
	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		if (probes[i].tp) {
			files_told |= probes[i].function == on_bio_file;
			mostrace_begin_told |= strstarts(probes[i].name, "writeback_start_");
		} else if (!probes[i].optional) {
			pr_err("mostrace: the kernel has no tracepoint %s\n", probes[i].name);
			return -ENODEV;
		}
	}
	return 0;
}

static void unregister(int n)
{
	while (n--)
		if (probes[n].tp)
			tracepoint_probe_unregister(probes[n].tp, probes[n].function, NULL);
	tracepoint_synchronize_unregister();
}

int mostrace_probes_start(void)
{
	int i, err;

	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		if (!probes[i].tp)
			continue;
		err = tracepoint_probe_register(probes[i].tp, probes[i].function, NULL);
		if (err) {
			unregister(i);
			return err;
		}
	}
	return 0;
}

/* When it returns, no probe runs. */
void mostrace_probes_stop(void)
{
	unregister(ARRAY_SIZE(probes));
}
