/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_CLAIM_H
#define MOSTRACE_CLAIM_H

#include <linux/types.h>

bool mostrace_claim(void);
void mostrace_release(void);

#endif
