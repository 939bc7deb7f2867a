/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_ENDIO_H
#define MOSTRACE_ENDIO_H

#include <linux/types.h>

struct bio;

/* The kinds of functions: those that end a bio's or buffer's IO show its owner. */
enum mostrace_endio {
	MOSTRACE_ENDIO_OTHER = 1,
	MOSTRACE_ENDIO_CHAIN,		/* a split part: bi_private is the parent */
	MOSTRACE_ENDIO_IOMAP,		/* bi_private is a struct iomap_dio */
	MOSTRACE_ENDIO_F2FS_COUNTED,	/* ... a bio_iostat_ctx that contains iomap's */
	MOSTRACE_ENDIO_F2FS_DIO,	/* ... a struct that begins with the inode */
	MOSTRACE_ENDIO_DIO,		/* ... a struct dio of fs/direct-io.c */
	MOSTRACE_ENDIO_BLKDEV,		/* direct IO of the device itself */
	MOSTRACE_ENDIO_WAIT,		/* submit_bio_wait: any code may use it */
	MOSTRACE_ENDIO_JBD2,		/* jbd2's commit */
	MOSTRACE_ENDIO_DM,		/* dm's clone of a bio, inside a structure of dm's */
	MOSTRACE_ENDIO_DM_CRYPT,	/* the bio that dm-crypt makes for such a clone */
	MOSTRACE_WORK_THROTTLE,		/* not an end_io: the function of blk-throttle's worker */
	MOSTRACE_WORK_FLUSHER,		/* not an end_io: the function of a flusher */
};

/* Returns true for direct IO of a file, or of a device through its file. */
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
