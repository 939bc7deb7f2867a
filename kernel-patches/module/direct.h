/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_DIRECT_H
#define MOSTRACE_DIRECT_H

#include "making.h"
#include "submitter.h"

void mostrace_find_direct(struct bio *bio, struct mostrace_submitter *who);
bool mostrace_put_direct(const struct mostrace_making *m, const struct mostrace_submitter *who,
			 u8 *origin);

#endif
