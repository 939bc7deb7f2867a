/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_TASK_H
#define MOSTRACE_TASK_H

#include <linux/cred.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/uidgid.h>
#include <asm/word-at-a-time.h>
#include "mostrace.h"

/* A task that did something, with its data for the entries. */
struct mostrace_task {
	u64 time_ns;	/* when it did that */
	u32 pid;
	u32 tgid;
	u32 uid;
	char comm[MOSTRACE_COMM_LEN];
};

/*
 * Copies the name of the current task word by word, and fills the rest with NULs: behind a name
 * there may be the rest of an earlier one.
 */
static inline void mostrace_copy_comm(char *to)
{
	const struct word_at_a_time constants = WORD_AT_A_TIME_CONSTANTS;
	unsigned long words[MOSTRACE_COMM_LEN / sizeof(long)], zeroes;
	bool ended = false;
	int i;

	memcpy(words, current->comm, sizeof(words));
	for (i = 0; i < ARRAY_SIZE(words); i++) {
		if (ended) {
			words[i] = 0;
		} else if (has_zero(words[i], &zeroes, &constants)) {
			zeroes = create_zero_mask(prep_zero_mask(words[i], zeroes, &constants));
			words[i] &= zero_bytemask(zeroes);
			ended = true;
		}
	}
	memcpy(to, words, sizeof(words));
}

static inline void mostrace_task_is_current(struct mostrace_task *task, u64 now)
{
	task->time_ns = now;
	task->pid = current->pid;
	task->tgid = current->tgid;
	/* As in the first user namespace. */
	task->uid = __kuid_val(current_uid());
	mostrace_copy_comm(task->comm);
}

#endif
