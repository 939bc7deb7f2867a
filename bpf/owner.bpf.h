/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a bio's pages belong to: a file of the page cache, a file under direct
 * IO, the block device's own pages (a filesystem's metadata), or a jbd2 block.
 */
#ifndef MOSTRACE_OWNER_BPF_H
#define MOSTRACE_OWNER_BPF_H

#include "direct.bpf.h"
#include "journal.bpf.h"

/* Fills in what the process entry says of the owner, and makes the file entries. */
static __always_inline void find_owner(struct bio *bio, const struct submitter *s,
				       struct mostrace_process *p, bool looped)
{
	struct bio *root = bio_root(bio);
	__u64 part_start = bio_part_start(bio);
	__u64 queued_ns = (p->opf & REQ_OP_MASK) == REQ_OP_WRITE ? s->time_ns : 0;
	struct buffer_head *bh;
	int direct;

	direct = direct_owner((__u64)root, direct_offset(s, p->head.sector), p->head.sector,
			      p->head.bytes, p->head.stage);
	if (direct != NOT_DIRECT) {
		p->origin = direct;
		return;
	}
	if (is_raw_direct(bio, root)) {
		p->origin = MOSTRACE_ORIGIN_RAW;
		return;
	}
	bh = bio_buffer(bio, part_start);
	if (bh && (journal_copy(bh, p, part_start) || journal_header(bio, bh, p))) {
		p->origin = MOSTRACE_ORIGIN_JOURNAL;
		return;
	}
	p->origin = looped ? walk_pages((__u64)bio, p->head.stage, queued_ns) :
			     walk_pages_unrolled((__u64)bio, p->head.stage, queued_ns);
}

#endif
