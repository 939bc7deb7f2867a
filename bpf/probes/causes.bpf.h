/* SPDX-License-Identifier: GPL-2.0-only */
/* The ring of causes, with one entry per record, and counters of what was lost. */
#ifndef MOSTRACE_CAUSES_BPF_H
#define MOSTRACE_CAUSES_BPF_H

#include "cgroup.bpf.h"
#include "compat.bpf.h"
#include "filesystems.bpf.h"
#include "mostrace.h"
#include "ring.bpf.h"
#include "target.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} causes SEC(".maps");

/* The names are those in the manifest. */
enum causes_loss {
	LOSS_CAUSES_RING,	/* entries that found the ring full */
	LOSS_CAUSES_TASKS,	/* calls and handles that could not be remembered */
	LOSS_CAUSES_MAX,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LOSS_CAUSES_MAX);
	__type(key, __u32);
	__type(value, __u64);
} causes_lost SEC(".maps");

static __always_inline void lose_cause(__u32 what)
{
	__u64 *count = bpf_map_lookup_elem(&causes_lost, &what);

	if (count)
		__sync_fetch_and_add(count, 1);
}

static __always_inline void put_cause(void *entry, __u32 size)
{
	const struct mostrace_entry *head = entry;

	if (bpf_ringbuf_output(&causes, entry, size, wake_flags(&causes, head->time_ns)))
		lose_cause(LOSS_CAUSES_RING);
}

CGROUP_TELLER(&causes, lose_cause(LOSS_CAUSES_RING))

static __always_inline struct mostrace_entry cause_head(__u16 type, __u16 size, __u64 time_ns)
{
	return (struct mostrace_entry){
		.type = type,
		.size = size,
		.dev = target.disk_dev,
		.time_ns = time_ns,
		.sector = MOSTRACE_NONE,
		.cpu = bpf_get_smp_processor_id(),
	};
}

#endif
