/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_NAMES_H
#define MOSTRACE_NAMES_H

#include <linux/types.h>

void mostrace_names_init(void);
bool mostrace_name_wanted(const char *name, size_t len);

#endif
