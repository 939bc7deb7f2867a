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
 * For bpf_ringbuf_submit or _output of a record of `size` bytes. The reader looks after a while by itself; it is
 * woken by the record with which what it has not read passes a multiple of RING_WAKE, and not by every one after it.
 */
static __always_inline __u64 ring_flags(void *ring, __u64 size)
{
	__u64 unread = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA);

	return (unread & (RING_WAKE - 1)) < size ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

#endif
