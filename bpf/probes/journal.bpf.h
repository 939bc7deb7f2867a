/* SPDX-License-Identifier: GPL-2.0-only */
/* jbd2's blocks: their kind, their transaction, and the home of a journalled copy. */
#ifndef MOSTRACE_JOURNAL_BPF_H
#define MOSTRACE_JOURNAL_BPF_H

#include "contents.bpf.h"
#include "file.bpf.h"

#define JBD2_MAGIC 0xc03b3998U

struct jbd2_header {
	__be32 h_magic;
	__be32 h_blocktype;
	__be32 h_sequence;
};

/* Returns the first sector of the bio's partition. Before 5.12 a bio does not name it, but a buffer does. */
static __always_inline __u64 buffer_start(const struct work *w, const struct bio_device *device)
{
	struct buffer_head *bh = w->ascent.root.private;

	if (bpf_core_field_exists(struct bio___bdev, bi_bdev))
		return device->start;
	return first_sector(LOAD(bh, b_bdev));
}

/* Returns the buffer_head of a bio with a single buffer (submit_bh), or NULL. */
static __always_inline struct buffer_head *bio_buffer(const struct work *w, __u64 part_start)
{
	struct buffer_head *bh = w->ascent.root.private;
	__u64 size;

	if (!bh || ((__u64)bh & 7))
		return 0;
	size = LOAD(bh, b_size);
	if (size != w->process.head.bytes ||
	    LOAD(bh, b_blocknr) * (size >> 9) + part_start != w->ascent.sector)
		return 0;
	return bh;
}

/*
 * Finds the place of a home block: on the traced disk, or on a device of the filesystem's own, which is above the disk
 * or, if the journal is external, another one.
 */
static __always_inline void find_home(struct work *w, struct buffer_head *bh,
				      struct buffer_head *home, __u64 part_start)
{
	struct mostrace_process *p = &w->process;
	struct block_device *bdev = LOAD(home, b_bdev);

	p->home_sector = LOAD(home, b_blocknr) * (LOAD(home, b_size) >> 9);
	if (bdev == LOAD(bh, b_bdev)) {
		if (w->ascent.is_above)
			p->home = MOSTRACE_HOME_FILESYSTEM;
		else
			p->home_sector += part_start;
		return;
	}
	if (disk_number(LOAD(bdev, bd_disk)) == target.disk_dev)
		p->home_sector += first_sector(bdev);
	else
		p->home = MOSTRACE_HOME_FILESYSTEM;
}

/*
 * Recognises a journalled copy: jbd2 makes a separate buffer_head for it, whose b_private is the home buffer, also for
 * frozen and escaped copies.
 */
static __always_inline bool journal_copy(struct work *w, __u32 slot, struct buffer_head *bh,
					 __u64 part_start)
{
	struct buffer_head *home = LOAD(bh, b_private);
	struct mostrace_process *p = &w->process;
	struct folio_view folio;
	struct journal_head *jh;
	struct inode *inode;

	if (!home || ((__u64)home & 7) || LOAD(bh, b_this_page))
		return false;
	jh = LOAD(home, b_private);
	if (!jh || journal_buffer(jh) != home)
		return false;
	find_home(w, bh, home, part_start);
	p->tid = journal_tid(jh);
	p->jbd2 = MOSTRACE_JBD2_METADATA_COPY;
	view_folio(&folio, (__u64)PEEK(home, b_page));
	/* The page belonged to a file and was truncated since; the device's pages stay while jbd2 uses them. */
	if (!folio.mapping)
		p->jbd2 = MOSTRACE_JBD2_DATA_COPY;
	inode = mapping_inode(folio.mapping);
	if (inode && !is_bdev(inode)) {
		struct run run = {
			.inode = inode,
			.offset = ((folio.index + folio.tail) << page_shift) +
				  ((__u64)LOAD(home, b_data) & ((1ULL << page_shift) - 1)),
			.sector = p->head.sector,
			.bytes = p->head.bytes,
			.origin = MOSTRACE_ORIGIN_JOURNAL,
		};
		p->jbd2 = MOSTRACE_JBD2_DATA_COPY;
		put_run(w, slot, &run);
	}
	return true;
}

/* Recognises descriptor, commit, revoke and superblock blocks by their headers. */
static __always_inline bool journal_header(struct work *w, struct buffer_head *bh)
{
	struct mostrace_process *p = &w->process;
	struct jbd2_header *h = (void *)LOAD(bh, b_data);
	__u32 type;

	if (PEEK_AT(__be32, &h->h_magic) != __builtin_bswap32(JBD2_MAGIC))
		return false;
	type = __builtin_bswap32(PEEK_AT(__be32, &h->h_blocktype));
	if (type < MOSTRACE_JBD2_DESCRIPTOR || type > MOSTRACE_JBD2_REVOKE)
		return false;
	/*
	 * A directory's or symlink's block may begin with the same bytes. Descriptors and commit records end in the
	 * commit's own code; superblocks and revoke blocks are written like any other buffer, so the analyser must
	 * check that they lie in the journal.
	 */
	if ((type == MOSTRACE_JBD2_DESCRIPTOR || type == MOSTRACE_JBD2_COMMIT) &&
	    !ends_in_jbd2(w->ascent.root.end_io, bh))
		return false;
	if (type != MOSTRACE_JBD2_SUPERBLOCK && type != MOSTRACE_JBD2_SUPERBLOCK_V1)
		p->tid = __builtin_bswap32(PEEK_AT(__be32, &h->h_sequence));
	p->jbd2 = type;
	return true;
}

#endif
