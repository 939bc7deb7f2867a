/* SPDX-License-Identifier: GPL-2.0-only */
/* Counters of losses, read by user space; the names are those in the manifest. */
#ifndef MOSTRACE_LOSS_BPF_H
#define MOSTRACE_LOSS_BPF_H

#include "kernel.bpf.h"
#include <bpf/bpf_helpers.h>

enum loss {
	LOSS_ENTRIES_RING,
	LOSS_SUBMITTERS,
	LOSS_PAGES_CUT,
	LOSS_DIRTIERS,
	LOSS_NESTED,		/* runs that were skipped, as the kernel counts them from 6.1 on */
	LOSS_MAX,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LOSS_MAX);
	__type(key, __u32);
	__type(value, __u64);
} losses SEC(".maps");

/* A probe may be interrupted by another one on its CPU, which counts too. */
static __always_inline void lose(__u32 what)
{
	__u64 *count = bpf_map_lookup_elem(&losses, &what);

	if (count)
		__sync_fetch_and_add(count, 1);
}

#endif
