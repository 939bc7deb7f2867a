// SPDX-License-Identifier: GPL-2.0-only
/* Direct IO: of a file, or of the block device itself. */
#include <linux/build_bug.h>
#include <linux/kernel.h>
#include "compat.h"
#include "direct.h"
#include "endio.h"
#include "file.h"
#include "inode.h"

/* What fs/iomap/direct-io.c's struct begins with. */
struct iomap_dio_head {
	struct kiocb *iocb;
	const void *dops;
	loff_t i_size;
	loff_t size;
};

/* fs/f2fs/iostat.h: 7.x counts a bio's time in a context of its own. */
struct f2fs_counted {
	void *sbi;
	unsigned long submit_ts;
	int type;
	void *post_read_ctx;	/* iomap's struct */
};

/* What struct kiocb begins with. */
struct kiocb_head {
	struct file *ki_filp;
	loff_t ki_pos;
};

static_assert(offsetof(struct kiocb, ki_filp) == offsetof(struct kiocb_head, ki_filp));
static_assert(offsetof(struct kiocb, ki_pos) == offsetof(struct kiocb_head, ki_pos));

/* Reads iomap's struct of a bio, and the iocb in it. */
static bool read_iomap(const struct bio *root, struct iomap_dio_head *dio, struct kiocb_head *iocb)
{
	struct f2fs_counted counted;
	void *at = root->bi_private;

	switch (mostrace_endio_of(root->bi_end_io)) {
	case MOSTRACE_ENDIO_IOMAP:
		break;
	case MOSTRACE_ENDIO_F2FS_COUNTED:
		if (!mostrace_peek(&counted, (struct f2fs_counted *)at))
			return false;
		at = counted.post_read_ctx;
		break;
	default:
		return false;
	}
	return mostrace_peek(dio, (struct iomap_dio_head *)at) &&
	       mostrace_peek(iocb, (struct kiocb_head *)dio->iocb);
}

/* How far into a block of its filesystem a bio begins, in bytes; false where that is not known. */
static bool place_in_block(const struct bio *bio, const struct inode *inode, u64 *place)
{
	u64 start, sectors;

	if (!mostrace_lies_at(inode, bio) ||
	    !mostrace_bdev_range(inode->i_sb->s_bdev, &start, &sectors))
		return false;
	*place = ((bio->bi_iter.bi_sector - start) << 9) & (i_blocksize(inode) - 1);
	return true;
}

/*
 * Where in the file a direct bio begins; `submitted` is the position up to which iomap
 * counts. Around a write that is no multiple of the block iomap writes zeroes, in bios
 * that it never counts: those before the data end at that position, those behind begin
 * there. A block of the file begins where one of the disk does, so the bio's place in its
 * block tells which it is; of whole blocks it does not, but these are no such zeroes.
 */
static u64 position(const struct bio *bio, const struct inode *inode, u64 submitted)
{
	u64 within = i_blocksize(inode) - 1, before = submitted - bio->bi_iter.bi_size, place;

	if (!(bio->bi_iter.bi_size & within))
		return mostrace_dio_counted() ? before : submitted;
	if (!place_in_block(bio, inode, &place))
		return MOSTRACE_NONE;
	if ((before & within) == place)
		return before;
	return (submitted & within) == place ? submitted : MOSTRACE_NONE;
}

/*
 * The file of a direct bio of iomap, and the position in it, while the bio is
 * submitted: ki_pos moves only at the end. That the struct is what it is taken
 * for shows in i_size.
 */
void mostrace_find_direct(struct bio *bio, struct mostrace_submitter *who)
{
	struct iomap_dio_head dio;
	struct kiocb_head iocb;
	struct inode *inode;
	loff_t size;

	if (!read_iomap(bio, &dio, &iocb) ||
	    !mostrace_peek(&inode, &iocb.ki_filp->f_inode) ||
	    !mostrace_peek(&size, &inode->i_size))
		return;
	/* It may be growing: then it has to look like an inode otherwise. */
	if (dio.i_size != size && !mostrace_is_inode(inode))
		return;
	who->direct_file = iocb.ki_filp;
	if (dio.i_size == size)
		who->direct_pos = position(bio, inode, iocb.ki_pos + dio.size);
}

#define DIO_WORDS 8

/* struct dio of fs/direct-io.c: the one inode among its first members. */
static struct inode *dio_inode(const void *dio)
{
	struct inode *words[DIO_WORDS];
	int i;

	if (!mostrace_peek(&words, (typeof(words) *)dio))
		return NULL;
	for (i = 0; i < DIO_WORDS; i++)
		if (mostrace_is_inode(words[i]))
			return words[i];
	return NULL;
}

/* The inode of a direct bio, by the struct that bi_private is; NULL where it is not known. */
static struct inode *direct_inode(const struct bio *root)
{
	struct iomap_dio_head dio;
	struct kiocb_head iocb;
	struct inode *inode;

	switch (mostrace_endio_of(root->bi_end_io)) {
	case MOSTRACE_ENDIO_DIO:
		return dio_inode(root->bi_private);
	case MOSTRACE_ENDIO_F2FS_DIO:
		if (!mostrace_peek(&inode, (struct inode **)root->bi_private))
			return NULL;
		break;
	default:
		if (!read_iomap(root, &dio, &iocb) ||
		    !mostrace_peek(&inode, &iocb.ki_filp->f_inode))
			return NULL;
	}
	return mostrace_is_inode(inode) ? inode : NULL;
}

static struct page *first_page(const struct bio *bio)
{
	const struct bio_vec *bvec = &bio->bi_io_vec[bio->bi_iter.bi_idx];

	return bvec->bv_page + ((bvec->bv_offset + bio->bi_iter.bi_bvec_done) >> PAGE_SHIFT);
}

/* A process's memory as the buffer of direct IO: anonymous, or a file of another device. */
static bool is_users_memory(const struct mostrace_submitter *who, const struct bio *bio)
{
	struct mostrace_place place;

	mostrace_locate(first_page(who->plain ?: bio), &place);
	return place.inode ? !mostrace_lies_at(place.inode, who->root) : place.mapped;
}

/* Direct IO of a block device; its short, synchronous form goes through submit_bio_wait. */
static bool is_raw_direct(const struct mostrace_submitter *who, const struct bio *bio)
{
	enum mostrace_endio is = mostrace_endio_of(who->root->bi_end_io);

	return is == MOSTRACE_ENDIO_BLKDEV ||
	       (is == MOSTRACE_ENDIO_WAIT && is_users_memory(who, bio));
}

static u8 put_direct(const struct mostrace_making *m, const struct mostrace_submitter *who,
		     struct mostrace_run *run)
{
	if (!run->inode)
		return MOSTRACE_ORIGIN_UNKNOWN;
	if (mostrace_is_bdev(run->inode))
		return MOSTRACE_ORIGIN_RAW;
	run->offset = who->direct_pos;
	mostrace_put_run(m, run);
	return MOSTRACE_ORIGIN_DIRECT;
}

/* Makes the file entry of direct IO, and tells its origin; false if the bio is none. */
bool mostrace_put_direct(const struct mostrace_making *m, const struct mostrace_submitter *who,
			 u8 *origin)
{
	struct mostrace_run run = {
		.sector = m->bio->bi_iter.bi_sector,
		.bytes = m->bio->bi_iter.bi_size,
		.origin = MOSTRACE_ORIGIN_DIRECT,
	};

	if (who->direct_file) {
		run.inode = file_inode(who->direct_file);
		run.dentry = who->direct_file->f_path.dentry;
		*origin = put_direct(m, who, &run);
		return true;
	}
	if (mostrace_is_direct(mostrace_endio_of(who->root->bi_end_io))) {
		run.inode = direct_inode(who->root);
		*origin = put_direct(m, who, &run);
		return true;
	}
	*origin = MOSTRACE_ORIGIN_RAW;
	return is_raw_direct(who, m->bio);
}
