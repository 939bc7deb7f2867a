/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_RECORD_H
#define MOSTRACE_RECORD_H

#include <linux/types.h>

struct bio;
struct file;

extern bool mostrace_files_told;	/* the kernel reports the file of a bio before it is
					 * queued */

void mostrace_bio_file(struct bio *bio, struct file *file, loff_t pos);
void mostrace_bio_queued(struct bio *bio);
void mostrace_bio_remapped(struct bio *bio, dev_t from);
void mostrace_bio_split(struct bio *split);
void mostrace_bio_completed(struct bio *bio);

#endif
