/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The task that has a number in the first namespace, found as by find_task_by_pid_ns (kernel/pid.c). The kernel's function for
 * programs, bpf_task_from_pid, is of 6.2, and not for all kinds of programs.
 */
#ifndef MOSTRACE_NUMBERED_BPF_H
#define MOSTRACE_NUMBERED_BPF_H

#include "task.bpf.h"
#include "xarray.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct idr {
	struct xarray idr_rt;
};

struct pid_namespace {
	struct idr idr;
};

struct upid {
	struct pid_namespace *ns;
};

struct pid {
	struct hlist_head tasks[1];	/* the first is that of PIDTYPE_PID */
	struct upid numbers[1];		/* the first is that of the first namespace */
};

struct task_struct___numbered {
	struct pid *thread_pid;
	struct hlist_node pid_links[1];
};

#pragma clang attribute pop

/* Returns the thread of this number, or NULL; the current task must be in the first namespace. */
static __always_inline struct task_struct *numbered_task(__u32 number)
{
	struct task_struct___numbered *current = (void *)this_task();
	struct hlist_node *link;
	struct pid *pid;

	pid = (void *)xa_pointer((__u64)BPF_CORE_READ(current, thread_pid, numbers[0].ns, idr.idr_rt.xa_head), number);
	link = pid ? BPF_CORE_READ(pid, tasks[0].first) : 0;
	return link ? (void *)link - bpf_core_field_offset(struct task_struct___numbered, pid_links) : 0;
}

#endif
