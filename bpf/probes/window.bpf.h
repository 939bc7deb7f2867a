/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The first bytes of a kernel structure, copied at once: one probe read instead of one for each field. A field that
 * lies further behind in some kernel is read from its own place.
 */
#ifndef MOSTRACE_WINDOW_BPF_H
#define MOSTRACE_WINDOW_BPF_H

#include "kernel.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/* A multiple of 8. In most structures the fields that are read lie within this. */
#define WINDOW_BYTES 128

struct window {
	__u64 at;
	__u64 words[WINDOW_BYTES / 8];
};

/* Copies `size` bytes, which must be a constant by the time the verifier runs. */
static __always_inline void copy_window(struct window *w, __u64 size)
{
	bpf_probe_read_kernel(w->words, size < WINDOW_BYTES ? size : WINDOW_BYTES, (void *)w->at);
}

/*
 * From 6.2 on a pointer can be given a type of vmlinux (not of a module): its fields are then loaded instead of copied
 * by a helper, which costs a hundred times as much. As with the helper, what cannot be read is 0.
 */
#ifdef MOSTRACE_UNTYPED
/* Without BTF in the kernel this must not even be asked for: libbpf would not load the probes. */
#define HAS_TYPES false
/*
 * A function that copies many fields has each of them on its stack. As a function of its own, its stack is not part
 * of a walk over pages, which needs all the rest.
 */
#define READS_MUCH __noinline
#else
#define HAS_TYPES bpf_ksym_exists(bpf_rdonly_cast)
#define READS_MUCH __always_inline
#endif

/* Does not copy beyond the structure: the memory behind it may not exist. */
#define OPEN(w, type, pointer)								\
	({										\
		(w)->at = (__u64)(pointer);						\
		if (!HAS_TYPES)								\
			copy_window(w, bpf_core_type_size(type));			\
	})

/* The class of pointers in GCC and clang. */
#define IS_POINTER(value) (__builtin_classify_type(value) == 5)

/*
 * Reads a field of the structure in the window. Its place is a constant by the time the verifier runs, which drops the
 * dead branches. For a pointer that was loaded by its type, the verifier knows what it points to and allows no
 * arithmetic; a value from a map, where windows are, is a number.
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

/* Types of vmlinux that begin with 8 and with 4 bytes. */
struct timespec64 {
	__s64 tv_sec;
} __attribute__((preserve_access_index));

/* Reads a value of 4 or 8 bytes: whatever is there, it is loaded as the beginning of such a type. */
#define PEEK_AT(type, at)									\
	({											\
		__u64 __at = (__u64)(at);							\
		type __value = 0;								\
												\
		_Static_assert(sizeof(type) == 4 || sizeof(type) == 8, "no type begins so");	\
		if (!HAS_TYPES)									\
			bpf_probe_read_kernel(&__value, sizeof(__value), (void *)__at);		\
		else if (sizeof(type) == 8)							\
			__value = (type)bpf_core_cast((void *)__at, struct timespec64)->tv_sec;	\
		else										\
			__value = (type)(__u64)bpf_core_cast((void *)__at, struct seqcount)->sequence;	\
		__value;									\
	})

/* BPF_CORE_READ for a field of 4 or 8 bytes of any type, also of a module's. */
#define PEEK(object, field)									\
	PEEK_AT(typeof((object)->field), (char *)(object) + bpf_core_field_offset(typeof(*(object)), field))

/* BPF_CORE_READ for a type of vmlinux. The verifier allows no arithmetic with a pointer that this returns. */
#define LOAD(src, ...)									\
	(HAS_TYPES ? ___arrow(bpf_core_cast(src, typeof(*(src))), __VA_ARGS__) :	\
		     BPF_CORE_READ(src, __VA_ARGS__))

#endif
