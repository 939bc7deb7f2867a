/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_CONTENTS_H
#define MOSTRACE_CONTENTS_H

#include <linux/types.h>

struct buffer_head;

u8 mostrace_contents_of(const struct buffer_head *bh);

#endif
