/* SPDX-License-Identifier: GPL-2.0-only */
/* jbd2's blocks: what they are, their transaction, and the home of a journalled copy. */
#ifndef MOSTRACE_JOURNAL_BPF_H
#define MOSTRACE_JOURNAL_BPF_H

#include "file.bpf.h"

#define JBD2_MAGIC 0xc03b3998U

struct jbd2_header {
	__be32 h_magic;
	__be32 h_blocktype;
	__be32 h_sequence;
};

/* The buffer_head of a single-buffer bio (submit_bh), or NULL. */
static __always_inline struct buffer_head *bio_buffer(struct bio *bio, __u64 part_start)
{
	struct buffer_head *bh = BPF_CORE_READ(bio, bi_private);
	__u64 size;

	if (!bh || ((__u64)bh & 7))
		return 0;
	size = BPF_CORE_READ(bh, b_size);
	if (size != BPF_CORE_READ(bio, bi_iter.bi_size))
		return 0;
	if (BPF_CORE_READ(bh, b_blocknr) * (size >> 9) + part_start !=
	    BPF_CORE_READ(bio, bi_iter.bi_sector))
		return 0;
	return bh;
}

/*
 * A journalled copy: jbd2 makes a buffer_head of its own, that stands alone
 * and whose b_private is the home buffer, also for frozen and escaped copies.
 */
static __always_inline bool journal_copy(struct buffer_head *bh, struct mostrace_process *p,
					 __u64 part_start)
{
	struct buffer_head *home = BPF_CORE_READ(bh, b_private);
	struct journal_head *jh;
	struct page *page, *head;
	struct inode *inode;

	if (!home || ((__u64)home & 7) || BPF_CORE_READ(bh, b_this_page))
		return false;
	jh = BPF_CORE_READ(home, b_private);
	if (!jh || journal_buffer(jh) != home)
		return false;
	p->home_sector = BPF_CORE_READ(home, b_blocknr) * (BPF_CORE_READ(home, b_size) >> 9) + part_start;
	p->tid = journal_tid(jh);
	p->jbd2 = MOSTRACE_JBD2_METADATA_COPY;
	page = BPF_CORE_READ(home, b_page);
	head = page_head(page);
	inode = page_inode(head);
	if (inode && !is_bdev(inode)) {
		struct run run = {
			.inode = inode,
			.offset = (page_index(page, head) << page_shift) +
				  ((__u64)BPF_CORE_READ(home, b_data) & ((1ULL << page_shift) - 1)),
			.sector = p->head.sector,
			.bytes = p->head.bytes,
			.origin = MOSTRACE_ORIGIN_JOURNAL,
		};
		p->jbd2 = MOSTRACE_JBD2_DATA_COPY;
		put_run(&run, p->head.stage);
	}
	return true;
}

/* Descriptor, commit, revoke and superblock blocks say what they are. */
static __always_inline bool journal_header(struct bio *bio, struct buffer_head *bh,
					   struct mostrace_process *p)
{
	struct jbd2_header h = {};
	__u32 type;

	if (bpf_probe_read_kernel(&h, sizeof(h), BPF_CORE_READ(bh, b_data)) ||
	    h.h_magic != __builtin_bswap32(JBD2_MAGIC))
		return false;
	type = __builtin_bswap32(h.h_blocktype);
	if (type < MOSTRACE_JBD2_DESCRIPTOR || type > MOSTRACE_JBD2_REVOKE)
		return false;
	/*
	 * A directory's or symlink's block may begin with the same bytes. Descriptors and commit
	 * records end in the commit's own code; superblocks and revoke blocks are written like any
	 * other buffer: that they lie in the journal is for the analyser to check.
	 */
	if ((type == MOSTRACE_JBD2_DESCRIPTOR || type == MOSTRACE_JBD2_COMMIT) && !ends_in_jbd2(bio, bh))
		return false;
	if (type != MOSTRACE_JBD2_SUPERBLOCK && type != MOSTRACE_JBD2_SUPERBLOCK_V1)
		p->tid = __builtin_bswap32(h.h_sequence);
	p->jbd2 = type;
	return true;
}

#endif
