/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The names of processes: each process that begins, and each main thread that gets another name, which every exec gives it. Kernel
 * threads are left out: each is a process of its own, so that its entries have its name.
 */
#ifndef MOSTRACE_COMM_BPF_H
#define MOSTRACE_COMM_BPF_H

#include "loss.bpf.h"
#include "mostrace.h"
#include "ring.bpf.h"
#include "target.bpf.h"
#include "tracepoint.bpf.h"

static __always_inline int put_comm(void *ring, struct task_struct *task, const char *comm, __u8 flags)
{
	struct mostrace_comm entry = {
		.head = {
			.type = MOSTRACE_COMM,
			.size = sizeof(entry),
			.dev = target.disk_dev,
			.time_ns = bpf_ktime_get_ns(),
			.sector = MOSTRACE_NONE,
			.cpu = bpf_get_smp_processor_id(),
			.flags = flags,
		},
		.tgid = GET(task, tgid),
	};

	if (GET(task, pid) != entry.tgid || GET(task, flags) & PF_KTHREAD)
		return 0;
	bpf_probe_read_kernel_str(entry.comm, sizeof(entry.comm), comm);
	if (bpf_ringbuf_output(ring, &entry, sizeof(entry), wake_flags(ring, entry.head.time_ns)))
		lose(LOSS_ENTRIES_RING);
	return 0;
}

#endif
