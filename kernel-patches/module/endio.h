/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_ENDIO_H
#define MOSTRACE_ENDIO_H

#include <linux/types.h>

struct bio;

/* What a function tells: that which ends a bio's or buffer's IO, of its owner. */
enum mostrace_endio {
	MOSTRACE_ENDIO_OTHER = 1,
	MOSTRACE_ENDIO_CHAIN,		/* a split part: bi_private is the parent */
	MOSTRACE_ENDIO_IOMAP,		/* bi_private is a struct iomap_dio */
	MOSTRACE_ENDIO_F2FS_COUNTED,	/* ... a bio_iostat_ctx with iomap's inside */
	MOSTRACE_ENDIO_F2FS_DIO,	/* ... a struct that begins with the inode */
	MOSTRACE_ENDIO_DIO,		/* ... a struct dio of fs/direct-io.c */
	MOSTRACE_ENDIO_BLKDEV,		/* direct IO of the device itself */
	MOSTRACE_ENDIO_WAIT,		/* submit_bio_wait: anyone's */
	MOSTRACE_ENDIO_JBD2,		/* jbd2's commit */
	MOSTRACE_ENDIO_DM,		/* dm's clone of a bio, within a struct of dm's */
	MOSTRACE_ENDIO_DM_CRYPT,	/* what dm-crypt makes of such a clone */
	MOSTRACE_WORK_THROTTLE,		/* no end_io: what blk-throttle's worker runs */
	MOSTRACE_WORK_FLUSHER,		/* nor this: what a flusher runs */
};

/* Direct IO of a file or, through one, of a device. */
static inline bool mostrace_is_direct(enum mostrace_endio is)
{
	switch (is) {
	case MOSTRACE_ENDIO_IOMAP:
	case MOSTRACE_ENDIO_F2FS_COUNTED:
	case MOSTRACE_ENDIO_F2FS_DIO:
	case MOSTRACE_ENDIO_DIO:
		return true;
	default:
		return false;
	}
}

int mostrace_endio_init(void);
void mostrace_endio_exit(void);
enum mostrace_endio mostrace_endio_of(void *end_io);
struct bio *mostrace_root(struct bio *bio);

#endif
