/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_DIRTIER_H
#define MOSTRACE_DIRTIER_H

#include "task.h"

struct address_space;
struct page;

extern bool mostrace_begin_told;	/* the kernel tells when a page begins to be written */

int mostrace_dirtiers_alloc(void);
void mostrace_dirtiers_free(void);
void mostrace_dirty(struct page *head, const struct address_space *mapping);
void mostrace_drop(const struct page *head);
void mostrace_begin_write(struct page *head);
bool mostrace_dirtier_of(struct page *head, u64 queued_ns, struct mostrace_task *who);

#endif
