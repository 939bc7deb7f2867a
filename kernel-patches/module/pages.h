/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_PAGES_H
#define MOSTRACE_PAGES_H

#include "making.h"

u8 mostrace_put_pages(const struct mostrace_making *m, u64 queued_ns);

#endif
