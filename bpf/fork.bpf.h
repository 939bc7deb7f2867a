/* SPDX-License-Identifier: GPL-2.0-only */
/* Who started which process. It is told ahead of all that the new process does. */
#ifndef MOSTRACE_FORK_BPF_H
#define MOSTRACE_FORK_BPF_H

#include "causes.bpf.h"

static __always_inline int put_fork(struct task_struct *parent, struct task_struct *child)
{
	struct mostrace_fork entry = {
		.tgid = LOAD(child, tgid),
		.parent = LOAD(parent, tgid),
	};

	/* A thread of a process that there is. */
	if (LOAD(child, pid) != entry.tgid)
		return 0;
	entry.head = cause_head(MOSTRACE_FORK, sizeof(entry), bpf_ktime_get_ns());
	put_cause(&entry, sizeof(entry));
	return 0;
}

#endif
