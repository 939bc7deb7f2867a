/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The first bytes of a kernel structure, copied at once: one probe read instead of one for each field.
 * A field that a kernel keeps farther behind is read from its place.
 */
#ifndef MOSTRACE_WINDOW_BPF_H
#define MOSTRACE_WINDOW_BPF_H

#include "kernel.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/* A multiple of 8. Of most structures the fields that are read lie within. */
#define WINDOW_BYTES 128

struct window {
	__u64 at;
	__u64 words[WINDOW_BYTES / 8];
};

/* Shows `size` bytes, a constant at the latest when the verifier comes. Whether there is such memory. */
static __always_inline bool open_window(struct window *w, const void *at, __u64 size)
{
	w->at = (__u64)at;
	return !bpf_probe_read_kernel(w->words, size < WINDOW_BYTES ? size : WINDOW_BYTES, at);
}

/* Not beyond the structure: what comes behind it need not be there. */
#define OPEN(w, type, at) open_window(w, at, bpf_core_type_size(type))

/*
 * The field of the structure that the window shows. Its place is a constant by the time the verifier
 * comes, which drops the dead branch.
 */
#define SEE(w, type, field)								\
	({										\
		typeof(((type *)0)->field) __value;					\
		__u64 __offset = bpf_core_field_offset(type, field);			\
											\
		if (__offset + sizeof(__value) <= WINDOW_BYTES)				\
			__value = *(typeof(__value) *)((char *)(w)->words + __offset);	\
		else									\
			bpf_probe_read_kernel(&__value, sizeof(__value),		\
					      (void *)((w)->at + __offset));		\
		__value;								\
	})

#endif
