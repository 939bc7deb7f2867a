/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The cgroup (v2) that the current task is in. An entry of its own records it when a process is first seen and when the process
 * has moved, so that the other entries stay as they are.
 */
#ifndef MOSTRACE_CGROUP_BPF_H
#define MOSTRACE_CGROUP_BPF_H

#include "compat.bpf.h"
#include "mostrace.h"
#include "target.bpf.h"

/* Deeper ones are cut at the root's end. */
#define CGROUP_DEPTH 16
/* It is reported again after this time, so that a lost entry is not missed for long, and each segment has its own. */
#define CGROUP_AGAIN_NS 1000000000ULL
/* The processes that each CPU remembers, a power of 2. */
#define CGROUP_TOLD 256

/* The entry that is being made. It is in a map because it is too large for the stack. */
struct cgroup_place {
	struct kernfs_node *node;	/* the folder whose name comes next */
	__u64 len;
	char out[sizeof(struct mostrace_cgroup) + 2 * MOSTRACE_NAME_MAX + 16] __attribute__((aligned(8)));
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cgroup_place);
} cgroup_places SEC(".maps");

/* For each slot, this holds what this CPU has recorded about the slot's last process. */
struct cgroup_told {
	__u64 id;
	__u64 time_ns;
	__u64 tgid;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CGROUP_TOLD);
	__type(key, __u32);
	__type(value, struct cgroup_told);
} cgroups_told SEC(".maps");

static __always_inline struct kernfs_node *kernfs_parent(struct kernfs_node *node)
{
	struct kernfs_node___before_6_15 *before = (void *)node;

	if (bpf_core_field_exists(node->__parent))
		return BPF_CORE_READ(node, __parent);
	return BPF_CORE_READ(before, parent);
}

/* Appends a folder's name with a slash, and goes on to its parent. Returns 1 at the end. It is a function of its own so that the
 * verifier walks it only once. */
__noinline int cgroup_step(void)
{
	__u32 zero = 0;
	struct cgroup_place *p = bpf_map_lookup_elem(&cgroup_places, &zero);
	struct kernfs_node *node, *parent;
	struct mostrace_cgroup *entry;
	const char *name;
	__u64 at;
	long len;

	if (!p || !p->node)
		return 1;
	node = p->node;
	/* The root has no name. */
	parent = kernfs_parent(node);
	if (!parent)
		return 1;
	entry = (void *)p->out;
	at = p->len;
	if (at >= MOSTRACE_NAME_MAX) {
		entry->head.flags = MOSTRACE_NAME_CUT;
		return 1;
	}
	asm volatile("%0 &= %1" : "+r"(at) : "i"(MOSTRACE_NAME_MAX - 1));
	name = BPF_CORE_READ(node, name);
	len = bpf_probe_read_kernel_str(p->out + sizeof(*entry) + at, MOSTRACE_NAME_MAX, name);
	if (len <= 1) {
		entry->head.flags = MOSTRACE_NAME_CUT;
		return 1;
	}
	at += len - 1;
	at &= 2 * MOSTRACE_NAME_MAX - 1;
	p->out[sizeof(*entry) + at] = '/';
	p->len = at + 1;
	p->node = parent;
	return 0;
}

/*
 * Returns what bpf_get_current_cgroup_id returns; the helper takes several times as long. It is verified sooner than asked_cgroup_id
 * (see current_uid), and takes some 40 instructions more.
 */
static __always_inline __u64 current_cgroup_id(void)
{
	struct task_struct *task;

	if (!HAS_TYPES)
		return bpf_get_current_cgroup_id();
	task = bpf_get_current_task_btf();
	return LOAD(task, cgroups, dfl_cgrp, kn, id);
}

/* Returns what is known about the current task's process, or about another one. */
static __always_inline struct cgroup_told *cgroup_told_of(__u32 tgid)
{
	__u32 slot = tgid & (CGROUP_TOLD - 1);

	if (!bpf_core_field_exists(struct task_struct, cgroups))
		return NULL;
	return bpf_map_lookup_elem(&cgroups_told, &slot);
}

/* Returns true if there is something to record about the current task's process, whose cgroup is this. This is asked for every bio. */
static __always_inline bool has_cgroup_news(__u64 id, __u64 now)
{
	__u32 tgid = current_tgid();
	struct cgroup_told *told = cgroup_told_of(tgid);

	return told && (told->id != id || told->tgid != tgid || now - told->time_ns >= CGROUP_AGAIN_NS);
}

/* Makes the entry. */
static __always_inline struct mostrace_cgroup *cgroup_news(__u64 id, __u64 now)
{
	__u32 zero = 0, tgid = current_tgid();
	struct cgroup_told *told = cgroup_told_of(tgid);
	struct mostrace_cgroup *entry;
	struct task_struct *task;
	struct cgroup_place *p;

	p = bpf_map_lookup_elem(&cgroup_places, &zero);
	if (!told || !p)
		return NULL;
	*told = (struct cgroup_told){ .id = id, .time_ns = now, .tgid = tgid };
	task = (void *)bpf_get_current_task();
	p->node = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn);
	p->len = 0;
	entry = (void *)p->out;
	*entry = (struct mostrace_cgroup){
		.head = {
			.type = MOSTRACE_CGROUP,
			.dev = target.disk_dev,
			.time_ns = now,
			.sector = MOSTRACE_NONE,
			.cpu = bpf_get_smp_processor_id(),
		},
		.id = id,
		.tgid = tgid,
	};
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < CGROUP_DEPTH; i++) {
		if (cgroup_step())
			break;
		if (i == CGROUP_DEPTH - 1)
			entry->head.flags = MOSTRACE_NAME_CUT;
	}
	entry->path_len = p->len;
	return entry;
}

/* The size of the whole entry, for the verifier too. The bytes behind the path are NULs. */
static __always_inline __u64 end_cgroup(struct mostrace_cgroup *entry)
{
	__u64 len = entry->path_len, zero = 0;

	asm volatile("%0 &= %1" : "+r"(len) : "i"(2 * MOSTRACE_NAME_MAX - 1));
	bpf_probe_read_kernel(entry->path + len, sizeof(zero), &zero);
	len = (sizeof(*entry) + len + 7) & ~7ULL;
	entry->head.size = len;
	return len;
}

/* Defines tell_cgroup(now), which writes the entry if there is something to record. It is global, so that it is verified once. */
#define CGROUP_TELLER(ring, lost)										\
	__noinline int tell_cgroup(__u64 now)								\
	{												\
		__u64 id = current_cgroup_id();								\
		struct mostrace_cgroup *news = has_cgroup_news(id, now) ? cgroup_news(id, now) : 0;	\
													\
		if (news && bpf_ringbuf_output(ring, news, end_cgroup(news), wake_flags(ring, now)))	\
			lost;										\
		return 0;										\
	}

#endif
