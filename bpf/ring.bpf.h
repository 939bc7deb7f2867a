/* SPDX-License-Identifier: GPL-2.0-only */
/* How a program hands a record to the reader, which sleeps. */
#ifndef MOSTRACE_RING_BPF_H
#define MOSTRACE_RING_BPF_H

#include "kernel.bpf.h"
#include <bpf/bpf_helpers.h>

/* <linux/bpf.h> */
enum { BPF_RB_FORCE_WAKEUP = 2 };
enum { BPF_RB_AVAIL_DATA = 0, BPF_RB_RING_SIZE = 1 };

/* Much is one part in so many of the ring. */
#define RING_PART 16

/* To ask how much waits costs as much as a good part of a record: each CPU does so once in so many, a power of 2. */
#define RING_ASK 32

/* The loader sets another. */
#define RING_BYTES (1 << 24)

enum ring { RING_ENTRIES, RING_EVENTS, RING_CAUSES, RINGS };

/* The records put into each. With one count for two rings, to which records go in turn, it would be one of them that asks always. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RINGS);
	__type(key, __u32);
	__type(value, __u32);
} ring_records SEC(".maps");

/* The reader looks after a while by itself; it is woken when much waits, and not by every record. */
static __always_inline __u64 wake_flags(void *ring, __u32 which)
{
	__u32 *records = bpf_map_lookup_elem(&ring_records, &which);

	if (records && ++*records & (RING_ASK - 1))
		return BPF_RB_NO_WAKEUP;
	return bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) < bpf_ringbuf_query(ring, BPF_RB_RING_SIZE) / RING_PART ?
		BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP;
}

#endif
