// SPDX-License-Identifier: GPL-2.0-only
/* Direct IO of a file, or of the block device itself. */
#include <linux/build_bug.h>
#include <linux/kernel.h>
#include "compat.h"
#include "direct.h"
#include "endio.h"
#include "file.h"
#include "inode.h"

/* The beginning of struct iomap_dio of fs/iomap/direct-io.c. */
struct iomap_dio_head {
	struct kiocb *iocb;
	const void *dops;
	loff_t i_size;
	loff_t size;
};

/* fs/f2fs/iostat.h: f2fs of 7.x measures a bio's time in a context of its own. */
struct f2fs_counted {
	void *sbi;
	unsigned long submit_ts;
	int type;
	void *post_read_ctx;	/* iomap's structure */
};

/* The beginning of struct kiocb. */
struct kiocb_head {
	struct file *ki_filp;
	loff_t ki_pos;
};

static_assert(offsetof(struct kiocb, ki_filp) == offsetof(struct kiocb_head, ki_filp));
static_assert(offsetof(struct kiocb, ki_pos) == offsetof(struct kiocb_head, ki_pos));

/* Reads iomap's structure for a bio, and the iocb that it points to. */
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

/* Finds at which byte of a block of its filesystem a bio begins; false if that is not known. */
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
 * Returns the file position at which a direct bio begins; `submitted` is the position up to which
 * iomap has counted.
 *
 * A write that is not a multiple of the block size is padded with zeros, in bios that iomap does
 * not count: the pad in front of the data ends at that position, the pad behind the data begins
 * there. A block is laid out on the disk as in the file, so the place in its block at which a bio
 * begins distinguishes the pads from the data. A bio of whole blocks is never such a pad.
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
 * Finds the file of iomap's direct bio, and the position in it, while the bio is being submitted:
 * ki_pos moves only at the end. i_size shows that the structure is what it is taken for.
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
	/* The file may be growing: then the address must look like an inode in other ways. */
	if (dio.i_size != size && !mostrace_is_inode(inode))
		return;
	who->direct_file = iocb.ki_filp;
	if (dio.i_size == size)
		who->direct_pos = position(bio, inode, iocb.ki_pos + dio.size);
}

#define DIO_WORDS 8

/* struct dio of fs/direct-io.c: its inode is the only one among its first members. */
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

/*
 * Returns the inode of a direct bio, found through the structure in bi_private; NULL if it is not
 * known.
 */
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

/*
 * Returns true if the buffer of direct IO is a process's memory: anonymous, or a file of another
 * device.
 */
static bool is_users_memory(const struct mostrace_submitter *who, const struct bio *bio)
{
	struct mostrace_place place;

	mostrace_locate(first_page(who->plain ?: bio), &place);
	return place.inode ? !mostrace_lies_at(place.inode, who->root) : place.mapped;
}

/*
 * Returns true for direct IO of a block device; its short, synchronous form uses submit_bio_wait.
 */
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

/* Makes the file entry of direct IO and returns its origin; false if the bio is not direct IO. */
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
