// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a bio's data belongs to: a file of the page cache, a file under direct
 * IO, the block device's own pages (a filesystem's metadata), or a jbd2 block.
 */
#include <linux/build_bug.h>
#include <linux/jbd2.h>
#include <linux/kernel.h>
#include "compat.h"
#include "internal.h"

#define CHAIN_MAX 4

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

/* The bio that the filesystem made, above the splits: bi_private of a split part is its parent. */
struct bio *mostrace_root(struct bio *bio)
{
	int i;

	for (i = 0; i < CHAIN_MAX; i++) {
		if (mostrace_endio_of(bio->bi_end_io) != MOSTRACE_ENDIO_CHAIN)
			break;
		bio = bio->bi_private;
	}
	return bio;
}

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

static bool read_inode(const struct kiocb_head *iocb, struct inode **inode)
{
	return mostrace_peek(inode, &iocb->ki_filp->f_inode) && mostrace_is_inode(*inode);
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
	loff_t before, size;

	if (!read_iomap(bio, &dio, &iocb) ||
	    !mostrace_peek(&inode, &iocb.ki_filp->f_inode) ||
	    !mostrace_peek(&size, &inode->i_size))
		return;
	/* It may be growing: then it has to look like an inode otherwise. */
	if (dio.i_size != size && !mostrace_is_inode(inode))
		return;
	who->direct_file = iocb.ki_filp;
	before = mostrace_dio_before(dio.size, bio->bi_iter.bi_size);
	if (dio.i_size == size && before >= 0)
		who->direct_pos = iocb.ki_pos + before;
}

/* Whether a bio is direct IO of a file or, through one, of a device. */
bool mostrace_is_direct(const struct bio *bio)
{
	switch (mostrace_endio_of(bio->bi_end_io)) {
	case MOSTRACE_ENDIO_IOMAP:
	case MOSTRACE_ENDIO_F2FS_COUNTED:
	case MOSTRACE_ENDIO_F2FS_DIO:
	case MOSTRACE_ENDIO_DIO:
		return true;
	default:
		return false;
	}
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

/*
 * Whether a bio is direct IO of a file or, through one, of a device; and of which
 * inode, if its Q was not seen.
 */
static bool find_direct(const struct bio *root, struct mostrace_run *run)
{
	struct iomap_dio_head dio;
	struct kiocb_head iocb;

	switch (mostrace_endio_of(root->bi_end_io)) {
	case MOSTRACE_ENDIO_IOMAP:
	case MOSTRACE_ENDIO_F2FS_COUNTED:
		if (!read_iomap(root, &dio, &iocb) || !read_inode(&iocb, &run->inode))
			run->inode = NULL;
		return true;
	case MOSTRACE_ENDIO_DIO:
		run->inode = dio_inode(root->bi_private);
		return true;
	case MOSTRACE_ENDIO_F2FS_DIO:
		if (!mostrace_peek(&run->inode, (struct inode **)root->bi_private) ||
		    !mostrace_is_inode(run->inode))
			run->inode = NULL;
		return true;
	default:
		return false;
	}
}

static u8 direct_owner(const struct mostrace_making *m, struct mostrace_run *run,
		       const struct mostrace_submitter *who)
{
	if (!run->inode)
		return MOSTRACE_ORIGIN_UNKNOWN;
	if (mostrace_is_bdev(run->inode))
		return MOSTRACE_ORIGIN_RAW;
	if (who->direct_pos != MOSTRACE_NONE)
		run->offset = who->direct_pos + ((run->sector - who->sector) << 9);
	mostrace_put_run(m, run);
	return MOSTRACE_ORIGIN_DIRECT;
}

/* A process's memory as the buffer of direct IO: anonymous, or a file of another device. */
static bool is_users_memory(const struct bio *bio)
{
	dev_t dev = mostrace_bio_dev(bio);
	struct mostrace_place place;

	mostrace_locate(mostrace_first_page(bio), &place);
	if (!place.inode)
		return place.mapped;
	return !mostrace_is_bdev(place.inode) && dev && place.inode->i_sb->s_dev != dev;
}

/* Direct IO of a block device; its short, synchronous form goes through submit_bio_wait. */
static bool is_raw_direct(const struct bio *bio, const struct bio *root)
{
	enum mostrace_endio is = mostrace_endio_of(root->bi_end_io);

	return is == MOSTRACE_ENDIO_BLKDEV || (is == MOSTRACE_ENDIO_WAIT && is_users_memory(bio));
}

/*
 * Reads the buffer_head of a single-buffer bio (submit_bh), if it has one:
 * its size, place and disk are the bio's. `start` is that of its partition.
 */
static bool read_buffer(const struct bio *bio, struct buffer_head *bh, u64 *start)
{
	struct buffer_head *at = bio->bi_private;
	struct gendisk *disk;
	u64 sectors;

	if (!at || (unsigned long)at & 3 || !mostrace_peek(bh, at))
		return false;
	if (bh->b_size != bio->bi_iter.bi_size || !bh->b_bdev ||
	    !mostrace_peek(&disk, &bh->b_bdev->bd_disk) || disk != mostrace_bio_disk(bio))
		return false;
	if (!mostrace_bdev_range(bh->b_bdev, start, &sectors))
		return false;
	return bh->b_blocknr * (bh->b_size >> 9) + *start == bio->bi_iter.bi_sector;
}

/* Which transaction commits the home buffer; 0 where that cannot be read. */
static u32 tid_of(struct journal_head *jh)
{
	transaction_t *transaction;
	tid_t tid;

	if (!mostrace_peek(&transaction, &jh->b_transaction) ||
	    !mostrace_peek(&tid, &transaction->t_tid))
		return 0;
	return tid;
}

/* A copy of a file's block, under data=journal. */
static void put_home_file(const struct mostrace_making *m, const struct buffer_head *home,
			  struct mostrace_process *p)
{
	struct mostrace_place place;
	struct mostrace_run run;

	mostrace_locate(home->b_page, &place);
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
 * A journalled copy: jbd2 makes a buffer_head of its own, that stands alone
 * and whose b_private is the home buffer, also for frozen and escaped copies.
 */
static bool journal_copy(const struct mostrace_making *m, const struct buffer_head *bh,
			 u64 start, struct mostrace_process *p)
{
	struct buffer_head *at = bh->b_private;
	struct buffer_head home, *back;
	struct journal_head *jh;

	if (bh->b_this_page || !at || (unsigned long)at & 3 || !mostrace_peek(&home, at))
		return false;
	jh = home.b_private;
	if (!jh || !mostrace_peek(&back, &jh->b_bh) || back != at)
		return false;
	p->home_sector = home.b_blocknr * (home.b_size >> 9) + start;
	p->tid = tid_of(jh);
	p->jbd2 = MOSTRACE_JBD2_METADATA_COPY;
	put_home_file(m, &home, p);
	return true;
}

/* Descriptor, commit, revoke and superblock blocks say what they are. */
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
	 * A directory's or symlink's block may begin with the same bytes. Descriptors and
	 * commit records end in the commit's own code; superblocks and revoke blocks are
	 * written like any other buffer: that they lie in the journal is for the analyser
	 * to check.
	 */
	if ((type == JBD2_DESCRIPTOR_BLOCK || type == JBD2_COMMIT_BLOCK) &&
	    mostrace_endio_of(mostrace_buffer_end_io(bh, bio)) != MOSTRACE_ENDIO_JBD2)
		return false;
	if (type != JBD2_SUPERBLOCK_V1 && type != JBD2_SUPERBLOCK_V2)
		p->tid = be32_to_cpu(h.h_sequence);
	p->jbd2 = type;
	return true;
}

/* Fills in what the process entry says of the owner, and makes the file entries. */
void mostrace_find_owner(const struct mostrace_making *m, const struct mostrace_submitter *who,
			 struct mostrace_process *p)
{
	struct mostrace_run run = {
		.offset = MOSTRACE_NONE,
		.sector = p->head.sector,
		.bytes = p->head.bytes,
		.origin = MOSTRACE_ORIGIN_DIRECT,
	};
	struct buffer_head bh;
	struct bio *root;
	u64 start;

	if (who->direct_file) {
		run.inode = file_inode(who->direct_file);
		run.dentry = who->direct_file->f_path.dentry;
		p->origin = direct_owner(m, &run, who);
		return;
	}
	root = mostrace_root(m->bio);
	if (find_direct(root, &run))
		p->origin = direct_owner(m, &run, who);
	else if (is_raw_direct(m->bio, root))
		p->origin = MOSTRACE_ORIGIN_RAW;
	else if (read_buffer(m->bio, &bh, &start) &&
		 (journal_copy(m, &bh, start, p) || journal_header(m->bio, &bh, p)))
		p->origin = MOSTRACE_ORIGIN_JOURNAL;
	else
		p->origin = mostrace_walk_pages(m, who->task.time_ns);
}
