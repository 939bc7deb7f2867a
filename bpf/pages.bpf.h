/* SPDX-License-Identifier: GPL-2.0-only */
/* A bio's pages, one after the other, and the runs of files and of dirtiers that they make. */
#ifndef MOSTRACE_PAGES_BPF_H
#define MOSTRACE_PAGES_BPF_H

#include "dirtier.bpf.h"
#include "f2fs.bpf.h"

/*
 * Walks a bio's pages; a bvec may span pages of different owners. Both runs end at `sector`. As
 * small as can be: see remember_current.
 */
struct page_walk {
	struct bio_vec *bvec;
	__u32 done;		/* bytes of *bvec already walked */
	__u32 left;		/* bytes of the bio still to walk */
	__u64 sector;
	__u64 queued_ns;	/* the bio; 0: it does not write */
	struct inode *inode;	/* of the file run */
	__u64 offset;
	__u32 bytes;
	__u8 stage;
	__u8 origin;		/* of the first page */
	__u8 begun;
	struct dirty_run dirtier;
};

static __always_inline void close_run(struct page_walk *w)
{
	struct run run = {
		.inode = w->inode,
		.offset = w->offset,
		.sector = w->sector - (w->bytes >> 9),
		.bytes = w->bytes,
		.origin = MOSTRACE_ORIGIN_FILE,
	};

	if (run.bytes)
		put_run(&run, w->stage);
	w->bytes = 0;
}

/*
 * Always 0, which the verifier cannot know: adding it takes away the bounds of a loop's counters,
 * so that the states of two rounds are alike and it stops walking the loop.
 */
static volatile __u32 zero;

static __always_inline __u8 origin_of(struct inode *inode, __u64 own)
{
	if (!inode)
		return MOSTRACE_ORIGIN_UNKNOWN;
	if (own)
		return own == F2FS_NODE_INO ? MOSTRACE_ORIGIN_NODE : MOSTRACE_ORIGIN_META;
	return is_bdev(inode) ? MOSTRACE_ORIGIN_BDEV : MOSTRACE_ORIGIN_FILE;
}

static long step_page(__u32 i, void *ctx)
{
	struct page_walk *w = ctx;
	struct bio_vec *bvec = w->bvec;
	__u64 page_size = 1ULL << page_shift;
	__u32 len, at, chunk;
	struct page *page, *head;
	struct inode *inode;
	__u64 offset, own;
	__u8 origin;

	if (!w->left)
		return 1;
	len = BPF_CORE_READ(bvec, bv_len);
	if (w->done >= len) {
		bvec = (struct bio_vec *)((char *)bvec + bpf_core_type_size(struct bio_vec));
		w->bvec = bvec;
		w->done = 0;
		len = BPF_CORE_READ(bvec, bv_len);
	}
	at = BPF_CORE_READ(bvec, bv_offset) + w->done;
	page = (struct page *)((char *)BPF_CORE_READ(bvec, bv_page) +
			       (__u64)(at >> page_shift) * bpf_core_type_size(struct page));
	at &= page_size - 1;
	chunk = page_size - at;
	if (chunk > len - w->done)
		chunk = len - w->done;
	if (chunk > w->left)
		chunk = w->left;
	if (!chunk)
		return 1;

	page = page_behind(page);
	head = page_head(page);
	inode = page_inode(head);
	offset = (page_index(page, head) << page_shift) + at;
	if (w->bytes && (w->inode != inode || w->offset + w->bytes != offset))
		close_run(w);
	own = inode ? f2fs_own_inode(inode) : 0;
	origin = origin_of(inode, own);
	if (!w->begun)
		w->origin = origin;
	w->begun = 1;
	if (origin == MOSTRACE_ORIGIN_NODE)
		put_node((__u64)page, offset >> page_shift, w->sector, w->stage,
			 BPF_CORE_READ(inode, i_sb, s_dev));
	if (origin == MOSTRACE_ORIGIN_FILE) {
		if (!w->bytes) {
			w->inode = inode;
			w->offset = offset;
		}
		w->bytes += chunk + zero;
	}
	step_dirtier(&w->dirtier, (__u64)head, w->sector, chunk + zero, w->queued_ns, w->stage);
	w->done += chunk + zero;
	w->left -= chunk + zero;
	w->sector += chunk >> 9;
	return 0;
}

/* The bvec that bi_iter stands at. */
static __always_inline struct bio_vec *bio_first_bvec(struct bio *bio)
{
	return (struct bio_vec *)((char *)BPF_CORE_READ(bio, bi_io_vec) +
		(__u64)BPF_CORE_READ(bio, bi_iter.bi_idx) * bpf_core_type_size(struct bio_vec));
}

static __always_inline struct page *bio_first_page(struct bio *bio)
{
	struct bio_vec *bvec = bio_first_bvec(bio);
	__u64 at = BPF_CORE_READ(bvec, bv_offset) + BPF_CORE_READ(bio, bi_iter.bi_bvec_done);

	return (struct page *)((char *)BPF_CORE_READ(bvec, bv_page) +
			       (at >> page_shift) * bpf_core_type_size(struct page));
}

#define PAGES_MAX 8192
#define PAGES_MAX_UNROLLED 1024

static __always_inline void start_walk(struct page_walk *w, struct bio *bio, __u32 stage,
				       __u64 queued_ns)
{
	*w = (struct page_walk){
		.bvec = bio_first_bvec(bio),
		.done = BPF_CORE_READ(bio, bi_iter.bi_bvec_done),
		.left = BPF_CORE_READ(bio, bi_iter.bi_size),
		.sector = BPF_CORE_READ(bio, bi_iter.bi_sector),
		.queued_ns = queued_ns,
		.stage = stage,
	};
}

/* Closes the walk; returns the origin of the first page. */
static __always_inline int end_walk(struct page_walk *w)
{
	close_run(w);
	close_dirtier(&w->dirtier, w->sector, w->stage);
	if (w->left)
		lose(LOSS_PAGES_CUT);
	return w->origin;
}

/*
 * Makes the file entries of a page-cache bio; returns the origin of its first page. Not static,
 * so that the verifier walks it once and not anew for every way that leads here; on 5.10 such a
 * function takes only scalars.
 */
__noinline int walk_pages(__u64 at, __u32 stage, __u64 queued_ns)
{
	struct page_walk w;

	start_walk(&w, (struct bio *)at, stage, queued_ns);
	bpf_loop(PAGES_MAX, step_page, &w, 0);
	return end_walk(&w);
}

/*
 * Without bpf_loop: a round is a function of its own, which the verifier walks once. It finds the
 * walk in a map; kernels before 5.17 do not preempt a probe.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct page_walk);
} walk_scratch SEC(".maps");

static __always_inline struct page_walk *scratch(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&walk_scratch, &key);
}

__noinline int step_scratch(__u32 i)
{
	struct page_walk *w = scratch();

	return w ? step_page(i, w) : 1;
}

__noinline int walk_pages_unrolled(__u64 at, __u32 stage, __u64 queued_ns)
{
	struct page_walk *w = scratch();

	if (!w)
		return MOSTRACE_ORIGIN_UNKNOWN;
	start_walk(w, (struct bio *)at, stage, queued_ns);
	for (__u32 i = 0; i < PAGES_MAX_UNROLLED; i++)
		if (step_scratch(i))
			break;
	return end_walk(w);
}

#endif
