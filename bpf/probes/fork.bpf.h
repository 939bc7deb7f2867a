/* SPDX-License-Identifier: GPL-2.0-only */
/* The parents of processes. The entry comes ahead of everything that the new process does. */
#ifndef MOSTRACE_FORK_BPF_H
#define MOSTRACE_FORK_BPF_H

#include "causes.bpf.h"

static __always_inline int put_fork(struct task_struct *parent, struct task_struct *child)
{
	struct mostrace_fork entry = {
		.tgid = LOAD(child, tgid),
		.parent = LOAD(parent, tgid),
	};

	/* This is a new thread of an existing process. */
	if (LOAD(child, pid) != entry.tgid)
		return 0;
	entry.head = cause_head(MOSTRACE_FORK, sizeof(entry), bpf_ktime_get_ns());
	put_cause(&entry, sizeof(entry));
	return 0;
}

#endif
