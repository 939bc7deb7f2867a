/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_RING_H
#define MOSTRACE_RING_H

#include <linux/types.h>
#include <linux/wait.h>
#include "mostrace.h"

/* `bytes`, a power of two, is the size of each CPU's ring. */
int mostrace_rings_alloc(u32 bytes);
void mostrace_rings_free(void);
void mostrace_put(struct mostrace_entry *entry);
bool mostrace_rings_filled(void);
bool mostrace_rings_half_full(void);
ssize_t mostrace_take(char __user *to, size_t room);

/* Woken when a ring becomes half full. */
extern wait_queue_head_t mostrace_waiters;

#endif
