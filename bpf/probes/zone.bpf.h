/* SPDX-License-Identifier: GPL-2.0-only */
/* Requests that manage zones. Their numbers, and the name of the enum that has these, differ between kernels. */
#ifndef MOSTRACE_ZONE_BPF_H
#define MOSTRACE_ZONE_BPF_H

#include "kernel.bpf.h"
#include "mostrace.h"

/* From 6.0 on. */
enum req_op {
	REQ_OP_ZONE_OPEN = 10,
	REQ_OP_ZONE_CLOSE = 11,
	REQ_OP_ZONE_FINISH = 12,
	REQ_OP_ZONE_RESET = 13,
	REQ_OP_ZONE_RESET_ALL = 15,
};

enum req_opf {
	REQ_OP_ZONE_OPEN___old = 10,
	REQ_OP_ZONE_CLOSE___old = 11,
	REQ_OP_ZONE_FINISH___old = 12,
	REQ_OP_ZONE_RESET___old = 15,
	REQ_OP_ZONE_RESET_ALL___old = 17,
};

#define IS_ZONE_OP(op, name)                                                                     \
	((bpf_core_enum_value_exists(enum req_op, name) &&                                       \
	  (op) == bpf_core_enum_value(enum req_op, name)) ||                                     \
	 (bpf_core_enum_value_exists(enum req_opf, name##___old) &&                              \
	  (op) == bpf_core_enum_value(enum req_opf, name##___old)))

/* Returns bi_opf with a number of ours for a zone operation; others are as they are. */
static __noinline __u32 numbered(__u32 opf)
{
	__u32 op = opf & REQ_OP_MASK, flags = opf & ~REQ_OP_MASK;

	if (IS_ZONE_OP(op, REQ_OP_ZONE_OPEN))
		return flags | MOSTRACE_ZONE_OPEN;
	if (IS_ZONE_OP(op, REQ_OP_ZONE_CLOSE))
		return flags | MOSTRACE_ZONE_CLOSE;
	if (IS_ZONE_OP(op, REQ_OP_ZONE_FINISH))
		return flags | MOSTRACE_ZONE_FINISH;
	if (IS_ZONE_OP(op, REQ_OP_ZONE_RESET))
		return flags | MOSTRACE_ZONE_RESET;
	if (IS_ZONE_OP(op, REQ_OP_ZONE_RESET_ALL))
		return flags | MOSTRACE_ZONE_RESET_ALL;
	return opf;
}

#endif
