/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_COUNT_H
#define MOSTRACE_COUNT_H

#include <linux/sysfs.h>

/* Their names in sysfs are those of the manifest's losses. */
enum mostrace_count {
	MOSTRACE_COUNT_ENTRIES,
	MOSTRACE_LOST_ENTRIES_RING,
	MOSTRACE_LOST_SUBMITTERS,
	MOSTRACE_LOST_PAGES_CUT,
	MOSTRACE_LOST_DIRTIERS,
	MOSTRACE_LOST_CAUSES_TASKS,
	MOSTRACE_COUNTS,
};

void mostrace_count(enum mostrace_count what);
void mostrace_counts_reset(void);

/* The attributes of the device that show the counters. */
extern const struct attribute_group *mostrace_count_groups[];

#endif
