/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_HANDLE_H
#define MOSTRACE_HANDLE_H

#include <linux/jbd2.h>
#include <linux/types.h>

struct inode;

/* Data of a handle's end, as jbd2 reports it. */
struct mostrace_handle_end {
	dev_t s_dev;
	u32 tid;
	u16 type;
	bool sync;
	int requested;
	int dirtied;	/* buffers that it was the first to modify; may be below 0 */
};

void mostrace_handles_reset(void);
void mostrace_handle_prepared(dev_t s_dev, struct inode *inode, unsigned long function);
void mostrace_handle_marks(struct inode *inode);
void mostrace_handle_begun(dev_t s_dev, u32 tid, u16 type);
void mostrace_handle_restarted(dev_t s_dev, u32 tid);
void mostrace_handle_modifies(handle_t *handle, struct journal_head *jh);
void mostrace_handle_ended(const struct mostrace_handle_end *end);

#endif
