/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_THREAD_H
#define MOSTRACE_THREAD_H

#include <linux/types.h>
#include "mostrace.h"

struct task_struct;

enum mostrace_handle_state {
	MOSTRACE_HANDLE_NONE,
	MOSTRACE_HANDLE_PREPARED,	/* ext4 has announced the handle */
	MOSTRACE_HANDLE_OPEN,
};

/* The call and the handle that a thread is in. */
struct mostrace_thread {
	struct task_struct *owner;
	bool taken;	/* the thread is in a call or a handle */
	/*
	 * The system call; its kind is MOSTRACE_CALL_OTHER if the thread is in none that is
	 * recorded.
	 */
	struct mostrace_call call;
	void __user *buffer;	/* the written buffer; NULL: several */
	bool is_ours;		/* the call involves the traced filesystem */
	bool asks;		/* it asks for durability, beside what it does */
	struct mostrace_handle handle;
	u8 state;		/* enum mostrace_handle_state */
};

int mostrace_threads_alloc(void);
void mostrace_threads_free(void);
struct mostrace_thread *mostrace_thread(void);
struct mostrace_thread *mostrace_thread_room(void);
void mostrace_thread_settle(struct mostrace_thread *thread);
void mostrace_thread_ended(const struct task_struct *task);

#endif
