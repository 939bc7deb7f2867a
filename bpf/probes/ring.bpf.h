/* SPDX-License-Identifier: GPL-2.0-only */
/* Passing of records to the reader, which sleeps. */
#ifndef MOSTRACE_RING_BPF_H
#define MOSTRACE_RING_BPF_H

#include "kernel.bpf.h"
#include <bpf/bpf_helpers.h>

/* <linux/bpf.h> */
enum { BPF_RB_FORCE_WAKEUP = 2 };
enum { BPF_RB_AVAIL_DATA = 0, BPF_RB_RING_SIZE = 1 };

/* The reader is woken when this fraction of the ring is filled. */
#define RING_PART 8

/*
 * Asking how much waits costs a good part of a record's time, so each CPU asks once in this many records, a power of
 * 2.
 */
#define RING_ASK 32

/* The loader sets another size. */
#define RING_BYTES (1 << 24)

enum ring { RING_ENTRIES, RING_EVENTS, RING_CAUSES, RING_OPERATIONS, RINGS };

/*
 * The number of records put into each ring. If two rings that are filled in turn shared one counter, always the same
 * one would ask.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RINGS);
	__type(key, __u32);
	__type(value, __u32);
} ring_records SEC(".maps");

/*
 * Decides whether to wake the reader: it looks from time to time by itself, and is woken when much waits, not for
 * every record.
 */
static __always_inline __u64 wake_flags(void *ring, __u32 which)
{
	__u32 *records = bpf_map_lookup_elem(&ring_records, &which);

	if (records && ++*records & (RING_ASK - 1))
		return BPF_RB_NO_WAKEUP;
	return bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) < bpf_ringbuf_query(ring, BPF_RB_RING_SIZE) / RING_PART ?
		BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP;
}

#endif
