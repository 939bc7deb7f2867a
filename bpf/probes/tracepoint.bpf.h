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

#endif
