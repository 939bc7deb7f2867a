/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_MAKING_H
#define MOSTRACE_MAKING_H

#include <linux/blk_types.h>
#include "mostrace.h"
#include "target.h"

/* A bio whose entries are being made. */
struct mostrace_making {
	const struct mostrace_target *target;
	struct bio *bio;
	u64 now;
};

/* Returns the head of an entry of the bio; its sectors are those of the whole bio. */
static inline struct mostrace_entry mostrace_head_of(const struct mostrace_making *m)
{
	return (struct mostrace_entry){
		.dev = m->target->disk,
		.time_ns = m->now,
		.sector = m->bio->bi_iter.bi_sector,
		.bytes = m->bio->bi_iter.bi_size,
		.stage = MOSTRACE_QUEUE,
	};
}

#endif
