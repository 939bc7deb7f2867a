// SPDX-License-Identifier: GPL-2.0-only
/* The probes: one function for each tracepoint. */
#include <linux/build_bug.h>
#include <linux/fs.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <trace/events/block.h>
#include <trace/events/filemap.h>
#include <trace/events/writeback.h>
#include "compat.h"
#include "dirtier.h"
#include "probe.h"
#include "record.h"

/*
 * The arguments of a tracepoint differ between kernels, and a probe must have exactly its type
 * (CFI). So both variants are here, and the compiler chooses the one that fits. 5.11 to 5.13: the
 * queue, which was the first argument, was removed.
 */
static void __maybe_unused on_bio_queue_q(void *data, struct request_queue *q, struct bio *bio)
{
	mostrace_bio_queued(bio);
}

static void __maybe_unused on_bio_queue(void *data, struct bio *bio)
{
	mostrace_bio_queued(bio);
}

static void __maybe_unused on_split_q(void *data, struct request_queue *q, struct bio *bio,
				      unsigned int new_sector)
{
	mostrace_bio_split(bio);
}

static void __maybe_unused on_split(void *data, struct bio *bio, unsigned int new_sector)
{
	mostrace_bio_split(bio);
}

static void __maybe_unused on_bio_remap_q(void *data, struct request_queue *q, struct bio *bio,
					  dev_t dev, sector_t from)
{
	mostrace_bio_remapped(bio, dev);
}

static void __maybe_unused on_bio_remap(void *data, struct bio *bio, dev_t dev, sector_t from)
{
	mostrace_bio_remapped(bio, dev);
}

/* 5.18 (203a31516616): the page was replaced by a folio. */
static void __maybe_unused on_dirty_page(void *data, struct page *page,
					 struct address_space *mapping)
{
	mostrace_dirty(mostrace_head(page), mapping);
}

/* The same applies here. */
struct folio;

static void __maybe_unused on_drop_page(void *data, struct page *page)
{
	mostrace_drop(page);
}

static void __maybe_unused on_drop_folio(void *data, struct folio *folio)
{
	/* A folio begins with its head page. */
	mostrace_drop((struct page *)folio);
}

static void on_dirty_buffer(void *data, struct buffer_head *bh)
{
	mostrace_dirty_buffer(bh);
}

/* For kernels that have the tracepoints of the series. */
static void on_bio_file(void *data, struct kiocb *iocb, struct bio *bio, loff_t pos)
{
	mostrace_bio_file(bio, iocb->ki_filp, pos);
}

/* This one is also for such kernels. */
static void __maybe_unused on_start_page(void *data, struct page *page,
					 struct address_space *mapping)
{
	mostrace_begin_write(mostrace_head(page));
}

#ifdef MOSTRACE_DIRTY_FOLIO
static void on_dirty_folio(void *data, struct folio *folio, struct address_space *mapping)
{
	mostrace_dirty(&folio->page, mapping);
}

static void on_start_folio(void *data, struct folio *folio, struct address_space *mapping)
{
	mostrace_begin_write(&folio->page);
}
#endif

/* Called only for bios that did not complete through a request. */
static void __maybe_unused on_bio_complete(void *data, struct request_queue *q, struct bio *bio)
{
	mostrace_bio_completed(bio);
}

/* 5.8 (d24de76af836): the error was removed. */
static void __maybe_unused on_bio_complete_error(void *data, struct request_queue *q,
						 struct bio *bio, int error)
{
	mostrace_bio_completed(bio);
}

#define TAKES(tp, ...) __builtin_types_compatible_p(typeof(trace_##tp), void (__VA_ARGS__))

#define BIO_QUEUE_Q	TAKES(block_bio_queue, struct request_queue *, struct bio *)
#define SPLIT_Q		TAKES(block_split, struct request_queue *, struct bio *, unsigned int)
#define BIO_REMAP_Q	TAKES(block_bio_remap, struct request_queue *, struct bio *, dev_t,	\
			      sector_t)

#define COMPLETE_ERROR	TAKES(block_bio_complete, struct request_queue *, struct bio *, int)
#define DROP_PAGE	TAKES(mm_filemap_delete_from_page_cache, struct page *)

static_assert(BIO_QUEUE_Q || TAKES(block_bio_queue, struct bio *));
static_assert(SPLIT_Q || TAKES(block_split, struct bio *, unsigned int));
static_assert(BIO_REMAP_Q || TAKES(block_bio_remap, struct bio *, dev_t, sector_t));
static_assert(DROP_PAGE || TAKES(mm_filemap_delete_from_page_cache, struct folio *));
static_assert(COMPLETE_ERROR || TAKES(block_bio_complete, struct request_queue *, struct bio *));
static_assert(TAKES(block_dirty_buffer, struct buffer_head *));
#ifdef MOSTRACE_DIRTY_FOLIO
static_assert(TAKES(writeback_dirty_folio, struct folio *, struct address_space *));
#else
static_assert(TAKES(writeback_dirty_page, struct page *, struct address_space *));
#endif

static struct probe {
	const char *name;
	void *function;
	bool optional;	/* recording works without it, but less is known */
	struct tracepoint *tp;
} probes[] = {
	{ "block_bio_queue",
	  __builtin_choose_expr(BIO_QUEUE_Q, on_bio_queue_q, on_bio_queue) },
	{ "block_split", __builtin_choose_expr(SPLIT_Q, on_split_q, on_split) },
	{ "block_bio_remap", __builtin_choose_expr(BIO_REMAP_Q, on_bio_remap_q, on_bio_remap) },
	{ "block_bio_complete",
	  __builtin_choose_expr(COMPLETE_ERROR, on_bio_complete_error, on_bio_complete) },
	{ "iomap_dio_submit_bio", on_bio_file, .optional = true },
	{ "block_dirty_buffer", on_dirty_buffer, .optional = true },
	{ "mm_filemap_delete_from_page_cache",
	  __builtin_choose_expr(DROP_PAGE, on_drop_page, on_drop_folio), .optional = true },
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
			mostrace_files_told |= probes[i].function == on_bio_file;
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

/* No probe runs after this returns. */
void mostrace_probes_stop(void)
{
	unregister(ARRAY_SIZE(probes));
}
