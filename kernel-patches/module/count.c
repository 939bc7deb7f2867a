// SPDX-License-Identifier: GPL-2.0-only
/* Counters of the current or last recording, shown in sysfs next to the device. */
#include <linux/cpumask.h>
#include <linux/device.h>
#include <linux/kernel.h>
#include <linux/percpu.h>
#include <linux/string.h>
#include "count.h"

static DEFINE_PER_CPU(u64[MOSTRACE_COUNTS], counts);

void mostrace_count(enum mostrace_count what)
{
	this_cpu_inc(counts[what]);
}

void mostrace_counts_reset(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		memset(per_cpu(counts, cpu), 0, sizeof(counts));
}

static u64 counted(enum mostrace_count what)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(counts, cpu)[what]);
	return sum;
}

#define COUNTER(_name, _what)								\
	static ssize_t _name##_show(struct device *dev, struct device_attribute *attr,	\
				    char *to)						\
	{										\
		return scnprintf(to, PAGE_SIZE, "%llu\n", counted(_what));		\
	}										\
	static DEVICE_ATTR_RO(_name)

COUNTER(entries, MOSTRACE_COUNT_ENTRIES);
COUNTER(entries_ring, MOSTRACE_LOST_ENTRIES_RING);
COUNTER(submitters, MOSTRACE_LOST_SUBMITTERS);
COUNTER(pages_cut, MOSTRACE_LOST_PAGES_CUT);
COUNTER(dirtiers, MOSTRACE_LOST_DIRTIERS);
COUNTER(causes_tasks, MOSTRACE_LOST_CAUSES_TASKS);

static struct attribute *entries[] = { &dev_attr_entries.attr, NULL };

static struct attribute *losses[] = {
	&dev_attr_entries_ring.attr,
	&dev_attr_submitters.attr,
	&dev_attr_pages_cut.attr,
	&dev_attr_dirtiers.attr,
	&dev_attr_causes_tasks.attr,
	NULL,
};

static const struct attribute_group entries_group = { .attrs = entries };
static const struct attribute_group losses_group = { .name = "losses", .attrs = losses };

const struct attribute_group *mostrace_count_groups[] = { &entries_group, &losses_group, NULL };
