/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * BTF tracepoints: their arguments have types, so that fields are loaded and not copied by a helper. Without BTF in the
 * kernel, raw tracepoints are used.
 */
#ifndef MOSTRACE_TRACEPOINT_BPF_H
#define MOSTRACE_TRACEPOINT_BPF_H

#include "kernel.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#ifdef MOSTRACE_UNTYPED
#define TRACEPOINT(name) SEC("raw_tp/" name)
#define GET(pointer, ...) BPF_CORE_READ(pointer, __VA_ARGS__)
#else
#define TRACEPOINT(name) SEC("tp_btf/" name)
#define GET(pointer, ...) ___arrow((pointer), __VA_ARGS__)
#endif

/*
 * The verifier requires a context to be read at constant offsets, and clang would merge two reads into one at a
 * variable offset, so the load is written as assembly.
 */
#define CTX(ctx, n)							\
	({								\
		__u64 __value;						\
		asm volatile("%0 = *(u64 *)(%1 + %2)"			\
			     : "=r"(__value) : "r"(ctx), "i"((n) * 8));	\
		__value;						\
	})

#endif
