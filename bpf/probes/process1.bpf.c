// SPDX-License-Identifier: GPL-2.0-only
/*
 * The context switches to and from the threads of process 1. Some kernels run no BPF program while such a thread is current; what a
 * softirq completes meanwhile is not seen. There, the switches from these threads are not counted, because the program would have
 * to run while they still are current, and those to them are.
 */
#include "window.bpf.h"

char LICENSE[] SEC("license") = "GPL";

__u64 to_process_1, from_process_1;

/* (preempt, prev, next, prev_state); the last is there from 5.18 on. */
SEC("raw_tp/sched_switch")
int process_1_switched(__u64 *ctx)
{
	struct task_struct *prev = (struct task_struct *)ctx[1], *next = (struct task_struct *)ctx[2];

	if (BPF_CORE_READ(next, tgid) == 1)
		__sync_fetch_and_add(&to_process_1, 1);
	if (BPF_CORE_READ(prev, tgid) == 1)
		__sync_fetch_and_add(&from_process_1, 1);
	return 0;
}
