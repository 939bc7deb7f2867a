/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * The stream that /dev/mostrace hands out: this header once, then the entries
 * of mostrace.h, a file's cut to its name: `size` is 72 + name_len, rounded up
 * to a multiple of 8.
 *
 * The reader skips what of the header it does not know, by `header_size`; an
 * entry's length is its own `size`.
 */
#ifndef MOSTRACE_STREAM_H
#define MOSTRACE_STREAM_H

#include "mostrace.h"

#define MOSTRACE_STREAM_MAGIC "MOSTDEV\n"
#define MOSTRACE_STREAM_ORDER 0x1234
#define MOSTRACE_STREAM_VERSION 1

/* 40 bytes. */
struct mostrace_stream {
	char magic[8];		/* MOSTRACE_STREAM_MAGIC */
	__u16 byte_order;	/* MOSTRACE_STREAM_ORDER, as the machine writes it */
	__u16 version;		/* MOSTRACE_STREAM_VERSION */
	__u16 header_size;	/* of this struct */
	__u16 entry_size;	/* of struct mostrace_entry */
	__u16 process_size;	/* of struct mostrace_process */
	__u16 file_size;	/* of struct mostrace_file, without its name */
	__u32 page_size;	/* of the kernel, in bytes */
	__u64 start_ns;		/* CLOCK_MONOTONIC when recording began */
	__u32 ring_bytes;	/* of each CPU's ring */
	__u32 pad;
};

#endif
