/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_PROBE_H
#define MOSTRACE_PROBE_H

int mostrace_probes_find(void);
int mostrace_probes_start(void);
void mostrace_probes_stop(void);

#endif
