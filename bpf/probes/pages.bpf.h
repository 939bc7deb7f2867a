/* SPDX-License-Identifier: GPL-2.0-only */
/* Walks a bio's pages, and finds the runs of files and dirtiers that they form. */
#ifndef MOSTRACE_PAGES_BPF_H
#define MOSTRACE_PAGES_BPF_H

#include "dirtier.bpf.h"
#include "f2fs.bpf.h"

static __always_inline void close_run(struct work *w, __u32 slot)
{
	struct page_walk *walk = &w->walk;

	if (!walk->file.bytes)
		return;
	walk->file.sector = walk->sector - (walk->file.bytes >> 9);
	put_run(w, slot, &walk->file);
	walk->file.bytes = 0;
}

static __always_inline __u8 origin_of(struct inode *inode)
{
	__u64 own;

	if (!inode)
		return MOSTRACE_ORIGIN_UNKNOWN;
	own = f2fs_own_inode(inode);
	if (own)
		return own == F2FS_NODE_INO ? MOSTRACE_ORIGIN_NODE : MOSTRACE_ORIGIN_META;
	return is_bdev(inode) ? MOSTRACE_ORIGIN_BDEV : MOSTRACE_ORIGIN_FILE;
}

static __always_inline void next_bvec(struct work *w)
{
	struct page_walk *walk = &w->walk;
	struct window *v = &w->ascent.window;

	OPEN(v, struct bio_vec, walk->next);
	walk->done -= walk->len;
	walk->page = (__u64)SEE(v, struct bio_vec, bv_page);
	walk->len = SEE(v, struct bio_vec, bv_len);
	walk->offset = SEE(v, struct bio_vec, bv_offset);
	walk->next = (struct bio_vec *)((char *)walk->next + bpf_core_type_size(struct bio_vec));
}

static __always_inline __u64 page_after(__u64 page, __u64 bytes)
{
	return page + (bytes >> page_shift) * bpf_core_type_size(struct page);
}

/*
 * Returns how many of the bvec's next `left` bytes are in one folio; `at` is the number of bytes ahead of them, from
 * the bvec's first page on. A bvec is contiguous memory, and so is a folio: if the last page is in the same folio, all
 * are.
 */
static __always_inline __u32 bytes_of_folio(const struct page_walk *walk, const struct folio_view *folio,
					    __u64 at, __u32 left)
{
	__u32 page = (1U << page_shift) - (at & ((1U << page_shift) - 1));

	if (left <= page)
		return left;
	if (folio->large && page_head(page_after(walk->page, at + left - 1)) == folio->head)
		return left;
	return page;
}

/* Continues the file run with `chunk` bytes at byte `offset` of the file. */
static __always_inline void step_file(struct work *w, __u32 slot, __u64 offset, __u32 chunk)
{
	struct page_walk *walk = &w->walk;
	struct run *run = &walk->file;

	if (run->bytes && (run->inode != walk->inode || run->offset + run->bytes != offset))
		close_run(w, slot);
	if (walk->origin != MOSTRACE_ORIGIN_FILE)
		return;
	if (!run->bytes) {
		run->inode = walk->inode;
		run->offset = offset;
	}
	run->bytes += chunk;
}

/* Takes the next folio, or page of it. Returns 1 at the bio's end. */
static __always_inline long step_folio(struct work *w, __u32 slot)
{
	struct page_walk *walk = &w->walk;
	struct folio_view folio;
	__u64 at, page, offset;
	__u32 chunk;

	if (!walk->left)
		return 1;
	if (walk->done >= walk->len) {
		next_bvec(w);
		if (walk->done >= walk->len)
			return !walk->len;
	}
	at = (__u64)walk->offset + walk->done;
	page = page_after(walk->page, at);
	chunk = walk->len - walk->done;
	if (chunk > walk->left)
		chunk = walk->left;
	view_folio_behind(&folio, page);
	chunk = bytes_of_folio(walk, &folio, at, chunk);
	if (!walk->begun || walk->mapping != folio.mapping) {
		walk->mapping = folio.mapping;
		walk->inode = mapping_inode(folio.mapping);
		walk->origin = origin_of(walk->inode);
		walk->is_mapped = walk->writes && is_mapped_writable(walk->inode);
	}
	if (!walk->begun)
		walk->first_origin = walk->origin;
	walk->begun = 1;
	offset = ((folio.index + folio.tail) << page_shift) + (at & ((1ULL << page_shift) - 1));
	if (!walk->settles) {
		step_file(w, slot, offset, chunk);
		if (walk->origin == MOSTRACE_ORIGIN_NODE)
			put_node(w, walk->inode, folio.head, offset >> page_shift);
	}
	if (walk->writes)
		step_dirtier(w, &folio, chunk);
	walk->done += chunk;
	walk->left -= chunk;
	walk->sector += chunk >> 9;
	return 0;
}

static __always_inline struct bio_vec *first_bvec(const struct bio_view *v)
{
	return (struct bio_vec *)((char *)v->io_vec + (__u64)v->idx * bpf_core_type_size(struct bio_vec));
}

static __always_inline __u64 first_page(const struct bio_view *v)
{
	struct bio_vec *bvec = first_bvec(v);

	return page_after((__u64)PEEK(bvec, bv_page),
			  (__u64)PEEK(bvec, bv_offset) + v->done);
}

#define FOLIOS_MAX 8192
#define FOLIOS_MAX_UNROLLED 1024

/* Starts the walk. The data of the traced bio is in the plain bio, behind `skip` bytes. */
static __always_inline void start_walk(struct work *w)
{
	const struct bio_view *plain = plain_of(&w->ascent);
	struct page_walk *walk = &w->walk;

	walk->next = first_bvec(plain);
	walk->len = 0;
	walk->done = plain->done + w->ascent.skip;
	walk->left = w->process.head.bytes;
	walk->sector = w->process.head.sector;
	walk->begun = 0;
	walk->origin = walk->first_origin = MOSTRACE_ORIGIN_UNKNOWN;
	walk->writes = (w->process.opf & REQ_OP_MASK) == REQ_OP_WRITE;
	walk->file = (struct run){ .origin = MOSTRACE_ORIGIN_FILE };
	walk->dirtier = (struct dirty_run){ };
}

/* Ends the walk. Returns the origin of the first page. */
static __always_inline int end_walk(struct work *w, __u32 slot)
{
	close_run(w, slot);
	close_dirtier(w);
	if (w->walk.left)
		lose(LOSS_PAGES_CUT);
	return w->walk.first_origin;
}

struct step_context {
	struct work *work;
	__u32 slot;
};

static long step_by_loop(__u32 i, void *ctx)
{
	struct step_context *c = ctx;

	return step_folio(c->work, c->slot);
}

/*
 * Makes the file and dirtier entries of a page-cache bio. Returns the origin of its first page. Not static, so that the
 * verifier walks it once and not again on every path to it; on 5.10 such a function can take only scalars.
 */
__noinline int walk_pages(__u32 slot)
{
	struct step_context c = { .work = work_of(slot), .slot = slot };

	if (!c.work)
		return MOSTRACE_ORIGIN_UNKNOWN;
	start_walk(c.work);
	bpf_loop(FOLIOS_MAX, step_by_loop, &c, 0);
	return end_walk(c.work, slot);
}

/* The walk without bpf_loop (before 5.17): each round is a function of its own, which the verifier walks once. */
__noinline int step_unrolled(__u32 slot)
{
	struct work *w = work_of(slot);

	return w ? step_folio(w, slot) : 1;
}

__noinline int walk_pages_unrolled(__u32 slot)
{
	struct work *w = work_of(slot);

	if (!w)
		return MOSTRACE_ORIGIN_UNKNOWN;
	start_walk(w);
	for (__u32 i = 0; i < FOLIOS_MAX_UNROLLED; i++)
		if (step_unrolled(slot))
			break;
	return end_walk(w, slot);
}

#endif
