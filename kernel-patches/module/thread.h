/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_THREAD_H
#define MOSTRACE_THREAD_H

#include <linux/types.h>
#include "mostrace.h"

struct task_struct;

enum mostrace_handle_state {
	MOSTRACE_HANDLE_NONE,
	MOSTRACE_HANDLE_PREPARED,	/* ext4 has said which is to come */
	MOSTRACE_HANDLE_OPEN,
};

/* What a thread has under way. */
struct mostrace_thread {
	struct task_struct *owner;
	bool taken;	/* it has something under way */
	/* The system call: its kind is MOSTRACE_CALL_OTHER when it makes none that is recorded. */
	struct mostrace_call call;
	void __user *buffer;	/* that a write is of; NULL: several */
	bool is_ours;		/* the call has to do with the traced filesystem */
	struct mostrace_handle handle;
	u8 state;		/* enum mostrace_handle_state */
};

int mostrace_threads_alloc(void);
void mostrace_threads_free(void);
struct mostrace_thread *mostrace_thread(void);
struct mostrace_thread *mostrace_thread_room(void);
void mostrace_thread_settle(struct mostrace_thread *thread);

#endif
