/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_SUBMITTER_H
#define MOSTRACE_SUBMITTER_H

#include "task.h"

struct bio;
struct bio_vec;
struct file;

/* The data of a bio that is known when it is queued. */
struct mostrace_submitter {
	struct mostrace_task task;
	u64 direct_pos;	/* file position of the data for direct IO, or MOSTRACE_NONE */
	struct file *direct_file;	/* the file of direct IO, or NULL; open until the IO ends */
	struct bio *root;	/* the bio that the data's owner made; differs for a clone */
	struct bio *plain;	/* for dm-crypt's bio: the one with the plaintext; otherwise NULL */
	const struct bio_vec *bvec;	/* where the data begins, bvec_done bytes in; NULL: none */
	u32 bvec_done;
	u8 flags;	/* enum mostrace_flags */
	bool queued;	/* false if set by iomap_dio_submit_bio, which comes before the bio is queued */
};

/* The value for a submitter that is not known. */
extern const struct mostrace_submitter mostrace_nobody;

int mostrace_submitters_alloc(void);
void mostrace_submitters_free(void);
void mostrace_remember(const struct bio *bio, const struct mostrace_submitter *who);
const struct mostrace_submitter *mostrace_recall(const struct bio *bio);
void mostrace_forget(const struct bio *bio);

#endif
