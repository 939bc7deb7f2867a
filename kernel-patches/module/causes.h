/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_CAUSES_H
#define MOSTRACE_CAUSES_H

int mostrace_causes_start(void);
void mostrace_causes_stop(void);

#endif
