/* SPDX-License-Identifier: GPL-2.0-only */
/* How a program hands a record to the reader, which sleeps. */
#ifndef MOSTRACE_RING_BPF_H
#define MOSTRACE_RING_BPF_H

#include "kernel.bpf.h"
#include <bpf/bpf_helpers.h>

/* <linux/bpf.h> */
enum { BPF_RB_FORCE_WAKEUP = 2 };
enum { BPF_RB_AVAIL_DATA = 0 };

/* Bytes that the ring puts ahead of each record. */
#define RING_HEAD 8

/* A power of 2, well below the size of any ring. */
#define RING_WAKE (1 << 20)

/*
 * The reader looks after a while by itself; it is woken by the record, of `size` bytes with its head, with which what it
 * has not read passes a multiple of RING_WAKE, and not by every one after it.
 */
static __always_inline __u64 wakes_with(__u64 unread, __u64 size)
{
	return (unread & (RING_WAKE - 1)) < size ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* For bpf_ringbuf_submit: the record counts as unread since it was reserved. */
static __always_inline __u64 submit_flags(void *ring, __u64 size)
{
	return wakes_with(bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA), size);
}

/* For bpf_ringbuf_output, which is yet to add it. */
static __always_inline __u64 output_flags(void *ring, __u64 size)
{
	return wakes_with(bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) + size, size);
}

#endif
