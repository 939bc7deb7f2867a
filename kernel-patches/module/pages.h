/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_PAGES_H
#define MOSTRACE_PAGES_H

#include "making.h"
#include "submitter.h"

u8 mostrace_put_pages(const struct mostrace_making *m, const struct mostrace_submitter *who);

#endif
