/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_DIRTIER_H
#define MOSTRACE_DIRTIER_H

#include "task.h"

struct address_space;
struct buffer_head;
struct page;

/*
 * The place that was made dirty: a folio, identified by its head page, or a buffer if several blocks of a
 * device share a page (FAT's blocks are sectors). Its memory may have been reused since.
 */
struct mostrace_dirt {
	const void *key;
	const void *of;		/* the mapping, or the buffer's device */
	u64 index;		/* the page's index in it, or the block */
	bool is_buffer;
};

extern bool mostrace_begin_told;	/* the kernel reports when a page begins to be written */

int mostrace_dirtiers_alloc(void);
void mostrace_dirtiers_free(void);
void mostrace_dirty(struct page *head, const struct address_space *mapping);
void mostrace_dirty_buffer(struct buffer_head *bh);
void mostrace_drop(const struct page *head);
void mostrace_begin_write(struct page *head);
struct mostrace_dirt mostrace_page_dirt(struct page *head);
bool mostrace_shares_page(const struct buffer_head *bh);
struct mostrace_dirt mostrace_buffer_dirt(const void *at, const struct buffer_head *bh);
bool mostrace_dirtier_of(const struct mostrace_dirt *dirt, u64 queued_ns,
			 struct mostrace_task *who);

#endif
