// SPDX-License-Identifier: GPL-2.0-only
/* Walks a bio's pages, and finds the runs of files and dirtiers that they form. */
#include <linux/buffer_head.h>
#include <linux/kernel.h>
#include "compat.h"
#include "count.h"
#include "dirtier.h"
#include "f2fs.h"
#include "file.h"
#include "inode.h"
#include "journal.h"
#include "pages.h"
#include "ring.h"

#define PAGES_MAX 8192

/* The state of a walk. A bvec may contain pages of different owners. */
struct walk {
	const struct mostrace_making *m;
	const struct mostrace_submitter *who;
	const struct bio_vec *bvec;
	u32 done;	/* bytes of *bvec that are walked */
	u32 left;	/* bytes of the bio that are left to walk */
	u64 sector;
	const struct inode *own;	/* an inode whose data is on the device the bio goes to */
	struct mostrace_run run;
	struct mostrace_dirtier dirtier;
	struct mostrace_dirt buffer;	/* the buffer that the bio writes, if it shares its page */
};

static void close_run(struct walk *w)
{
	if (w->run.bytes)
		mostrace_put_run(w->m, &w->run);
	w->run.bytes = 0;
}

static void open_run(struct walk *w, const struct mostrace_place *place)
{
	w->run.inode = place->inode;
	w->run.offset = place->offset;
	w->run.sector = w->sector;
}

static void close_dirtier(struct walk *w)
{
	if (w->dirtier.head.bytes)
		mostrace_put(&w->dirtier.head);
	w->dirtier.head.bytes = 0;
}

static void open_dirtier(struct walk *w, const struct mostrace_task *who)
{
	w->dirtier = (struct mostrace_dirtier){
		.head = mostrace_head_of(w->m),
		.dirty_ns = who->time_ns,
		.pid = who->pid,
		.tgid = who->tgid,
		.uid = who->uid,
	};
	w->dirtier.head.type = MOSTRACE_DIRTIER;
	w->dirtier.head.size = sizeof(w->dirtier);
	w->dirtier.head.sector = w->sector;
	w->dirtier.head.bytes = 0;
	memcpy(w->dirtier.comm, who->comm, sizeof(who->comm));
}

static void find_buffer(struct walk *w)
{
	const struct bio *root = w->who->root;
	struct buffer_head bh;

	if (mostrace_bio_buffer(root, &bh) && mostrace_shares_page(&bh))
		w->buffer = mostrace_buffer_dirt(root->bi_private, &bh);
}

static void step_dirtier(struct walk *w, struct page *page, u8 origin, u32 chunk)
{
	struct mostrace_task who;
	struct mostrace_dirt dirt;

	if (!op_is_write(bio_op(w->m->bio)))
		return;
	if (origin == MOSTRACE_ORIGIN_BDEV && w->buffer.key)
		dirt = w->buffer;
	else
		dirt = mostrace_page_dirt(mostrace_head(page));
	if (!mostrace_dirtier_of(&dirt, w->who->task.time_ns, &who)) {
		close_dirtier(w);
		return;
	}
	if (w->dirtier.pid != who.pid)
		close_dirtier(w);
	if (!w->dirtier.head.bytes)
		open_dirtier(w, &who);
	w->dirtier.head.bytes += chunk;
}

static u8 origin_of(const struct mostrace_place *place)
{
	u8 own;

	if (!place->inode)
		return MOSTRACE_ORIGIN_UNKNOWN;
	own = mostrace_f2fs_origin(place->inode);
	if (own)
		return own;
	return mostrace_is_bdev(place->inode) ? MOSTRACE_ORIGIN_BDEV : MOSTRACE_ORIGIN_FILE;
}

/*
 * Finds the page, and its inode if the inode's data is on the device to which the bio goes; other
 * inodes' numbers would be wrong there.
 */
static void locate(struct walk *w, struct page *page, struct mostrace_place *place)
{
	mostrace_locate_behind(page, place);
	if (!place->inode || place->inode == w->own)
		return;
	if (mostrace_lies_at(place->inode, w->who->root))
		w->own = place->inode;
	else
		place->inode = NULL;
}

/* Walks one page and returns its origin. */
static u8 step_page(struct walk *w)
{
	u32 at = w->bvec->bv_offset + w->done;
	u32 chunk = min3((u32)(PAGE_SIZE - offset_in_page(at)), w->bvec->bv_len - w->done,
			 w->left);
	struct page *page = w->bvec->bv_page + (at >> PAGE_SHIFT);
	struct mostrace_place place;
	u8 origin;

	locate(w, page, &place);
	place.offset += offset_in_page(at);
	origin = origin_of(&place);
	if (w->run.inode != place.inode || w->run.offset + w->run.bytes != place.offset)
		close_run(w);
	if (origin == MOSTRACE_ORIGIN_NODE)
		mostrace_put_node(w->m, page, &place, w->sector);
	if (origin == MOSTRACE_ORIGIN_FILE) {
		if (!w->run.bytes)
			open_run(w, &place);
		w->run.bytes += chunk;
	}
	step_dirtier(w, place.page, origin, chunk);
	w->done += chunk;
	w->left -= chunk;
	w->sector += chunk >> 9;
	return origin;
}

/* Makes the file entries of a page-cache bio and returns the origin of its first page. */
u8 mostrace_put_pages(const struct mostrace_making *m, const struct mostrace_submitter *who)
{
	const struct bio *data = who->plain ?: m->bio;
	struct walk w = {
		.m = m,
		.who = who,
		.bvec = &data->bi_io_vec[data->bi_iter.bi_idx],
		.done = data->bi_iter.bi_bvec_done,
		.left = m->bio->bi_iter.bi_size,
		.sector = m->bio->bi_iter.bi_sector,
		.run.origin = MOSTRACE_ORIGIN_FILE,
	};
	u8 first = MOSTRACE_ORIGIN_UNKNOWN, origin;
	int i;

	find_buffer(&w);
	for (i = 0; i < PAGES_MAX && w.left; i++) {
		if (w.done >= w.bvec->bv_len) {
			w.bvec++;
			w.done = 0;
			if (!w.bvec->bv_len)
				break;
		}
		origin = step_page(&w);
		if (!i)
			first = origin;
	}
	close_run(&w);
	close_dirtier(&w);
	if (w.left)
		mostrace_count(MOSTRACE_LOST_PAGES_CUT);
	return first;
}
