/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_FILESYSTEMS_H
#define MOSTRACE_FILESYSTEMS_H

#include <linux/types.h>

bool mostrace_any_filesystem(void);
bool mostrace_filesystem_wanted(dev_t s_dev);

#endif
