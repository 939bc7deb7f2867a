/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The current task. Kernels before 5.17 have neither bpf_loop nor bpf_find_vma, before 5.15 no helper for a task's registers, and
 * before 5.11 no typed current task. Their verifiers reject a callback even in dead code, so probes that need these are compiled
 * twice (MOSTRACE_LOOPLESS).
 */
#ifndef MOSTRACE_TASK_BPF_H
#define MOSTRACE_TASK_BPF_H

#include "kernel.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define EBUSY 16

#ifdef MOSTRACE_LOOPLESS
#define OF_TASK(task, ...) BPF_CORE_READ(task, __VA_ARGS__)
#else
/* Reads a field of the current task, or of one that it points to. */
#define OF_TASK(task, ...) ___arrow((task), __VA_ARGS__)
#endif

static __always_inline struct task_struct *this_task(void)
{
#ifdef MOSTRACE_LOOPLESS
	return (struct task_struct *)bpf_get_current_task();
#else
	return (struct task_struct *)bpf_get_current_task_btf();
#endif
}

#endif
