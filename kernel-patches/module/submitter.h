/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_SUBMITTER_H
#define MOSTRACE_SUBMITTER_H

#include "task.h"

struct bio;
struct file;

struct mostrace_submitter {
	struct mostrace_task task;
	u64 sector;	/* bi_sector at Q: splits move it */
	u64 direct_pos;	/* file position of `sector` for direct IO, or MOSTRACE_NONE */
	struct file *direct_file;	/* of direct IO, or NULL; open until the IO ends */
	u8 flags;	/* enum mostrace_flags */
	bool queued;	/* else it is from block_bio_file, which comes before Q */
	bool recorded;	/* the entry was made: a later issue must not repeat it */
};

int mostrace_submitters_alloc(void);
void mostrace_submitters_free(void);
void mostrace_remember(struct bio *bio, const struct mostrace_submitter *who);
bool mostrace_recall(struct bio *bio, struct mostrace_submitter *who);
/* As recall, and marks the record; `who->recorded` is what it was before. */
bool mostrace_recall_once(struct bio *bio, struct mostrace_submitter *who);
void mostrace_forget(struct bio *bio);

#endif
