/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_TARGET_H
#define MOSTRACE_TARGET_H

#include <linux/types.h>

struct bio;
struct inode;

/* A disk or partition that is recorded. */
struct mostrace_target {
	dev_t disk;
	dev_t dev;
	u64 start;	/* first sector on the disk */
	u64 end;	/* one past the last sector */
};

bool mostrace_any_target(void);
/* Returns the disk of the first target. */
dev_t mostrace_disk(void);
const struct mostrace_target *mostrace_target_of_bio(const struct bio *bio);
/* These two check only the device, not the sectors. */
bool mostrace_device_of_bio_wanted(const struct bio *bio);
bool mostrace_inode_wanted(const struct inode *inode);

#endif
