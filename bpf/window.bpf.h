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

/* Copies `size` bytes, a constant at the latest when the verifier comes. */
static __always_inline void copy_window(struct window *w, __u64 size)
{
	bpf_probe_read_kernel(w->words, size < WINDOW_BYTES ? size : WINDOW_BYTES, (void *)w->at);
}

/*
 * From 6.2 on a pointer can be given a type, of vmlinux and not of a module: its fields are loaded then, and not copied by a
 * helper, which costs a hundred times as much. As there, what cannot be read is 0.
 */
#ifdef MOSTRACE_UNTYPED
/* Nor may it be asked for where the kernel has no BTF: libbpf would not load the probes. */
#define HAS_TYPES false
/* What copies many fields has each on its stack. Apart, that does not lie below a walk over pages, which needs all the rest. */
#define READS_MUCH __noinline
#else
#define HAS_TYPES bpf_ksym_exists(bpf_rdonly_cast)
#define READS_MUCH __always_inline
#endif

/* Not beyond the structure: what comes behind it need not be there. */
#define OPEN(w, type, pointer)								\
	({										\
		(w)->at = (__u64)(pointer);						\
		if (!HAS_TYPES)								\
			copy_window(w, bpf_core_type_size(type));			\
	})

/* GCC's and clang's class of pointers. */
#define IS_POINTER(value) (__builtin_classify_type(value) == 5)

/*
 * The field of the structure that the window shows. Its place is a constant by the time the verifier
 * comes, which drops the dead branches. Of a pointer that was loaded by its type the verifier knows what it points
 * to, and lets nothing be computed with it; what comes from a map, where windows are, is a number.
 */
#define SEE(w, type, field)								\
	({										\
		typeof(((type *)0)->field) __value;					\
		__u64 __offset = bpf_core_field_offset(type, field);			\
											\
		if (HAS_TYPES && !IS_POINTER(__value)) {				\
			__value = bpf_core_cast((void *)(w)->at, type)->field;		\
		} else if (HAS_TYPES) {							\
			*(typeof(__value) *)(w)->words =				\
				bpf_core_cast((void *)(w)->at, type)->field;		\
			asm volatile("" ::: "memory");					\
			__value = *(typeof(__value) *)(w)->words;			\
		} else if (__offset + sizeof(__value) <= WINDOW_BYTES) {		\
			__value = *(typeof(__value) *)((char *)(w)->words + __offset);	\
		} else {								\
			bpf_probe_read_kernel(&__value, sizeof(__value),		\
					      (void *)((w)->at + __offset));		\
		}									\
		__value;								\
	})

/* BPF_CORE_READ of a type of vmlinux. With a pointer that it gives nothing can be computed. */
#define LOAD(src, ...)									\
	(HAS_TYPES ? ___arrow(bpf_core_cast(src, typeof(*(src))), __VA_ARGS__) :	\
		     BPF_CORE_READ(src, __VA_ARGS__))

#endif
