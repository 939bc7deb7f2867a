/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_RING_H
#define MOSTRACE_RING_H

#include <linux/types.h>
#include "mostrace.h"

/* `bytes` of each CPU: a power of two. */
int mostrace_rings_alloc(u32 bytes);
void mostrace_rings_free(void);
void mostrace_put(struct mostrace_entry *entry);
bool mostrace_rings_filled(void);
size_t mostrace_take(void *to, size_t room);

#endif
