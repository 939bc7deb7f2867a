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
 * Asking how much waits costs a good part of a record's time, so it is asked for the records of one microsecond (2^10 ns) in this
 * many, a power of 2.
 */
#define RING_ASK 32

/* The loader sets another size. */
#define RING_BYTES (1 << 24)

/*
 * Decides whether a record of `time_ns` wakes the reader: it looks from time to time by itself, and is woken when much waits, not
 * for every record.
 */
static __always_inline __u64 wake_flags(void *ring, __u64 time_ns)
{
	if (time_ns >> 10 & (RING_ASK - 1))
		return BPF_RB_NO_WAKEUP;
	return bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) < bpf_ringbuf_query(ring, BPF_RB_RING_SIZE) / RING_PART ?
		BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP;
}

#endif
