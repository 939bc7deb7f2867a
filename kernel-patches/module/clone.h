/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_CLONE_H
#define MOSTRACE_CLONE_H

#include "submitter.h"

bool mostrace_is_clone(const struct bio *bio);
u64 mostrace_position(const struct mostrace_submitter *who, const struct bio *bio);
bool mostrace_inherit(struct mostrace_submitter *who, struct bio *bio);

#endif
