/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_HEAD_H
#define MOSTRACE_HEAD_H

#include <linux/ktime.h>
#include "mostrace.h"
#include "target.h"

/* Returns the head of an entry that does not belong to a bio. */
static inline struct mostrace_entry mostrace_head_now(u16 type, u16 size)
{
	return (struct mostrace_entry){
		.type = type,
		.size = size,
		.dev = mostrace_disk(),
		.time_ns = ktime_get_ns(),
		.sector = MOSTRACE_NONE,
	};
}

#endif
