// SPDX-License-Identifier: GPL-2.0-only
/* jbd2's blocks: their kind, their transaction, and the home of a journalled copy. */
#include <linux/jbd2.h>
#include <linux/kernel.h>
#include "compat.h"
#include "contents.h"
#include "endio.h"
#include "file.h"
#include "inode.h"
#include "journal.h"

/* Finds the place of a buffer on its disk, and that disk; false if they cannot be read. */
static bool place_of(const struct buffer_head *bh, struct gendisk **disk, u64 *start, u64 *sector)
{
	u64 sectors;

	if (!bh->b_bdev || !mostrace_peek(disk, &bh->b_bdev->bd_disk) ||
	    !mostrace_bdev_range(bh->b_bdev, start, &sectors))
		return false;
	*sector = bh->b_blocknr * (bh->b_size >> 9) + *start;
	return true;
}

/*
 * Reads the buffer_head of a bio with a single buffer (submit_bh), if it has one: one with the
 * bio's size, place and disk.
 */
bool mostrace_bio_buffer(const struct bio *bio, struct buffer_head *bh)
{
	struct buffer_head *at = bio->bi_private;
	struct gendisk *disk;
	u64 start, sector;

	return at && !((unsigned long)at & 3) && mostrace_peek(bh, at) &&
	       bh->b_size == bio->bi_iter.bi_size && place_of(bh, &disk, &start, &sector) &&
	       disk == mostrace_bio_disk(bio) && sector == bio->bi_iter.bi_sector;
}

/*
 * Finds the place of a home block: on the recorded disk or, if dm is above that or the journal has
 * a device of its own, on the filesystem's device. False if it cannot be read.
 */
bool mostrace_home_of(const struct buffer_head *home, dev_t recorded, u64 *at, u8 *counted_from)
{
	struct gendisk *disk;
	u64 start, sector;

	if (!place_of(home, &disk, &start, &sector))
		return false;
	*at = disk_devt(disk) == recorded ? sector : sector - start;
	*counted_from = disk_devt(disk) == recorded ? MOSTRACE_HOME_DISK : MOSTRACE_HOME_FILESYSTEM;
	return true;
}

/* Returns the transaction that commits the home buffer; 0 if it cannot be read. */
static u32 tid_of(struct journal_head *jh)
{
	transaction_t *transaction;
	tid_t tid;

	if (!mostrace_peek(&transaction, &jh->b_transaction) ||
	    !mostrace_peek(&tid, &transaction->t_tid))
		return 0;
	return tid;
}

/* A copy of a file's block, in the mode data=journal. */
static void put_home_file(const struct mostrace_making *m, const struct buffer_head *home,
			  struct mostrace_process *p)
{
	struct mostrace_place place;
	struct mostrace_run run;

	mostrace_locate(home->b_page, &place);
	/*
	 * The page belonged to a file and was truncated since; the device's pages stay while jbd2
	 * uses them.
	 */
	if (!place.mapped)
		p->jbd2 = MOSTRACE_JBD2_DATA_COPY;
	if (!place.inode || mostrace_is_bdev(place.inode))
		return;
	p->jbd2 = MOSTRACE_JBD2_DATA_COPY;
	run = (struct mostrace_run){
		.inode = place.inode,
		.offset = place.offset + offset_in_page(home->b_data),
		.sector = p->head.sector,
		.bytes = p->head.bytes,
		.origin = MOSTRACE_ORIGIN_JOURNAL,
	};
	mostrace_put_run(m, &run);
}

/*
 * Recognises a journalled copy: jbd2 makes a separate buffer_head for it, whose b_private is the
 * home buffer, also for frozen and escaped copies. The journal may be on a device of its own.
 */
static bool journal_copy(const struct mostrace_making *m, const struct buffer_head *bh,
			 struct mostrace_process *p)
{
	struct buffer_head *at = bh->b_private;
	struct buffer_head home, *back;
	struct journal_head *jh;

	if (bh->b_this_page || !at || (unsigned long)at & 3 || !mostrace_peek(&home, at))
		return false;
	jh = home.b_private;
	if (!jh || !mostrace_peek(&back, &jh->b_bh) || back != at)
		return false;
	mostrace_home_of(&home, m->target->disk, &p->home_sector, &p->home);
	p->tid = tid_of(jh);
	p->jbd2 = MOSTRACE_JBD2_METADATA_COPY;
	put_home_file(m, &home, p);
	return true;
}

/* Recognises descriptor, commit, revoke and superblock blocks by their headers. */
static bool journal_header(const struct bio *bio, const struct buffer_head *bh,
			   struct mostrace_process *p)
{
	journal_header_t h;
	u32 type;

	if (!mostrace_peek(&h, (journal_header_t *)bh->b_data) ||
	    be32_to_cpu(h.h_magic) != JBD2_MAGIC_NUMBER)
		return false;
	type = be32_to_cpu(h.h_blocktype);
	if (type < JBD2_DESCRIPTOR_BLOCK || type > JBD2_REVOKE_BLOCK)
		return false;
	/*
	 * A directory's or symlink's block may begin with the same bytes. Descriptors and commit
	 * records end in the commit's own code; superblocks and revoke blocks are written like any
	 * other buffer, so the analyser must check that they lie in the journal.
	 */
	if ((type == JBD2_DESCRIPTOR_BLOCK || type == JBD2_COMMIT_BLOCK) &&
	    mostrace_endio_of(mostrace_buffer_end_io(bh, bio)) != MOSTRACE_ENDIO_JBD2)
		return false;
	if (type != JBD2_SUPERBLOCK_V1 && type != JBD2_SUPERBLOCK_V2)
		p->tid = be32_to_cpu(h.h_sequence);
	p->jbd2 = type;
	return true;
}

/*
 * Fills in the process entry's fields on a buffer that is written by itself and on a journal's
 * block, and makes the file entry of a copy of a file's block. Returns false if the bio, as jbd2
 * made it (`root`), does not belong to a journal.
 */
bool mostrace_put_journal(const struct mostrace_making *m, const struct bio *root,
			  struct mostrace_process *p)
{
	struct buffer_head bh;

	if (!mostrace_bio_buffer(root, &bh))
		return false;
	if (op_is_write(bio_op(root)))
		p->contents = mostrace_contents_of(&bh);
	return journal_copy(m, &bh, p) || journal_header(root, &bh, p);
}
