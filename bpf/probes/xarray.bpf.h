/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Looking things up in the kernel's xarrays (<linux/xarray.h>, since 4.20). The lowest bits of an entry are 2 for a node, 1 for a value
 * and 0 for a pointer. The slot of a node is chosen by the bits of the index from `shift` on.
 */
#ifndef MOSTRACE_XARRAY_BPF_H
#define MOSTRACE_XARRAY_BPF_H

#include "kernel.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/* The most nodes on the way to an index: one has 64 slots, or 16 in a kernel for small machines. */
#define XA_MAX_HEIGHT 16

/* Returns the pointer that the array with this first entry has at `index`, or 0. */
static __always_inline __u64 xa_pointer(__u64 entry, __u64 index)
{
	__u64 slots = bpf_core_field_offset(struct xa_node, slots);
	__u64 mask = bpf_core_field_size(struct xa_node, slots) / sizeof(void *) - 1;
	__u64 node, place;

#pragma clang loop unroll(disable)
	for (int height = 0; height < XA_MAX_HEIGHT && (entry & 3) == 2; height++) {
		node = entry - 2;
		place = index >> (BPF_CORE_READ((struct xa_node *)node, shift) & 63);
		/* The first node has no slot for greater indices. */
		if (!height && place > mask)
			return 0;
		entry = 0;
		bpf_probe_read_kernel(&entry, sizeof(entry), (void *)(node + slots + (place & mask) * sizeof(void *)));
	}
	return entry & 3 ? 0 : entry;
}

#endif
