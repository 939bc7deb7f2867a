/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_JOURNAL_H
#define MOSTRACE_JOURNAL_H

#include "making.h"

struct buffer_head;

bool mostrace_bio_buffer(const struct bio *bio, struct buffer_head *bh);
bool mostrace_put_journal(const struct mostrace_making *m, const struct bio *root,
			  struct mostrace_process *p);
bool mostrace_home_of(const struct buffer_head *home, dev_t recorded, u64 *at, u8 *counted_from);

#endif
