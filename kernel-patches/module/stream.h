/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * The stream that /dev/mostrace returns: this header once, then the entries of mostrace.h. A file
 * entry is cut to its name: its `size` is 72 + name_len, rounded up to a multiple of 8.
 *
 * The reader uses `header_size` to skip any part of the header that it does not know; the length of
 * an entry is its own `size`.
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
	__u16 header_size;	/* size of this structure */
	__u16 entry_size;	/* size of struct mostrace_entry */
	__u16 process_size;	/* size of struct mostrace_process */
	__u16 file_size;	/* size of struct mostrace_file, without its name */
	__u32 page_size;	/* page size of the kernel, in bytes */
	__u64 start_ns;		/* CLOCK_MONOTONIC when recording began */
	__u32 ring_bytes;	/* size of each CPU's ring */
	__u32 pad;
};

#endif
