/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_ENDIO_H
#define MOSTRACE_ENDIO_H

struct bio;

/* What a bio's or buffer's end_io tells of its owner. */
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
};

int mostrace_endio_init(void);
void mostrace_endio_exit(void);
enum mostrace_endio mostrace_endio_of(void *end_io);
struct bio *mostrace_root(struct bio *bio);

#endif
