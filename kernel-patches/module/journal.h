/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_JOURNAL_H
#define MOSTRACE_JOURNAL_H

#include "making.h"

bool mostrace_put_journal(const struct mostrace_making *m, const struct bio *root,
			  struct mostrace_process *p);

#endif
