/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What need be told only once, as numbers that are as good as unique. Each number has one place; what another number has pushed out is
 * told again.
 */
#ifndef MOSTRACE_ONCE_BPF_H
#define MOSTRACE_ONCE_BPF_H

#include "kernel.bpf.h"
#include <bpf/bpf_helpers.h>

#define ONCE_BITS 16

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << ONCE_BITS);
	__type(key, __u32);
	__type(value, __u64);
} told_once SEC(".maps");

/* Returns a number in which each bit depends on both. */
static __always_inline __u64 mixed(__u64 number, __u64 more)
{
	number = (number ^ more) * 0x9e3779b97f4a7c15ULL;
	return number ^ number >> 32;
}

/* Returns true if the number, which is not 0, was there before. */
static __always_inline bool was_told(__u64 number)
{
	__u32 place = number >> (64 - ONCE_BITS);
	__u64 *told = bpf_map_lookup_elem(&told_once, &place);

	if (!told || *told == number)
		return told;
	*told = number;
	return false;
}

#endif
