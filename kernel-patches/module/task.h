/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_TASK_H
#define MOSTRACE_TASK_H

#include <linux/cred.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/uidgid.h>
#include "mostrace.h"

/* A task that did something, as the entries tell of it. */
struct mostrace_task {
	u64 time_ns;	/* when it did what it is remembered for */
	u32 pid;
	u32 tgid;
	u32 uid;
	char comm[MOSTRACE_COMM_LEN];
};

static inline void mostrace_task_is_current(struct mostrace_task *task, u64 now)
{
	task->time_ns = now;
	task->pid = current->pid;
	task->tgid = current->tgid;
	/* As the first user namespace has it. */
	task->uid = __kuid_val(current_uid());
	strscpy_pad(task->comm, current->comm, sizeof(task->comm));
}

#endif
