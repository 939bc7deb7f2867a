/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stacks that calls and handles are made from (`record --stacks`). A stack's number is a hash of its addresses, so that
 * probes need no table of them: it is told when it is first seen, and again from time to time.
 */
#ifndef MOSTRACE_STACK_BPF_H
#define MOSTRACE_STACK_BPF_H

#include "causes.bpf.h"

/* <linux/bpf.h> */
enum { BPF_F_USER_STACK = 1 << 8, BPF_F_USER_BUILD_ID = 1 << 11 };

/* It is told again after this time, so that a lost entry is not missed for long. */
#define STACK_AGAIN_NS 10000000000ULL

/* Without `record --stacks` this is false, and the table below has a few entries only. */
const volatile bool tells_stacks;

/* The most frames of each kind that are recorded: the innermost ones. */
#define STACK_KERNEL 48
#define STACK_USER 64

/* <linux/bpf.h>: struct bpf_stack_build_id. */
struct user_place {
	__s32 status;		/* 1: build_id is known, and `at` is an offset in the file; 2: `at` is an address */
	__u8 build_id[20];
	__u64 at;
};

/* The entry as the recorder gets it: with addresses, in place of which the bundle's has text. */
struct raw_stack {
	struct mostrace_stack stack;
	__u64 addresses[STACK_KERNEL + STACK_USER];
	struct user_place places[STACK_USER];
};

struct stack_place {
	struct raw_stack raw;
	__u64 thread;		/* the thread whose stack it is */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack_place);
} stack_places SEC(".maps");

/* When each stack was told, by its number. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, __u64);
	__type(value, __u64);
} stacks_told SEC(".maps");

static __always_inline __u64 hash_step(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 32;
}

/* Returns the number of frames that the helper has written. */
static __always_inline __u32 frames_of(long bytes)
{
	return bytes > 0 ? (__u64)bytes / sizeof(__u64) : 0;
}

/* The helper has set the frames that the stack does not have to 0. */
static __always_inline __u64 hash_of(const struct raw_stack *raw)
{
	__u64 hash = raw->stack.tgid;

#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < STACK_KERNEL + STACK_USER; i++)
		hash = hash_step(hash, raw->addresses[i]);
	return hash;
}

/*
 * Returns the number of the stack that the current task's program has and, for a handle, the kernel behind it;
 * MOSTRACE_NONE if there is none. Tells the stack if that is news. A function of its own: the verifier walks it once.
 */
__noinline __u64 tell_stack(__u32 of_handle)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	__u64 thread = bpf_get_current_pid_tgid();
	struct stack_place *p;
	struct raw_stack *raw;
	__u64 id, now, *told;
	__u32 zero = 0;
	long size;

	p = bpf_map_lookup_elem(&stack_places, &zero);
	if (!p)
		return MOSTRACE_NONE;
	raw = &p->raw;
	p->thread = thread;
	__builtin_memset(raw->addresses, 0, sizeof(raw->addresses));
	raw->stack.tgid = thread >> 32;
	raw->stack.kernel = 0;
	raw->stack.user = 0;
	if (of_handle) {
		size = STACK_KERNEL * sizeof(__u64);
		raw->stack.kernel = frames_of(bpf_get_task_stack((void *)task, raw->addresses, size, 0));
	}
	/* A worker of io_uring has no program behind it. */
	if (!(task->flags & PF_NO_CALL)) {
		size = STACK_USER * sizeof(__u64);
		raw->stack.user = frames_of(bpf_get_task_stack((void *)task, raw->addresses + STACK_KERNEL, size,
							       BPF_F_USER_STACK));
	}
	if (!raw->stack.kernel && !raw->stack.user)
		return MOSTRACE_NONE;
	id = hash_of(raw);
	now = bpf_ktime_get_ns();
	told = bpf_map_lookup_elem(&stacks_told, &id);
	if (told && now - *told < STACK_AGAIN_NS)
		return id;
	bpf_get_task_stack((void *)task, raw->places, sizeof(raw->places), BPF_F_USER_STACK | BPF_F_USER_BUILD_ID);
	raw->stack.head = cause_head(MOSTRACE_STACK, sizeof(*raw), now);
	raw->stack.id = id;
	/* Where a task is preempted within a program, another one may have used the place meanwhile. */
	if (p->thread != thread) {
		lose_cause(LOSS_CAUSES_TASKS);
		return MOSTRACE_NONE;
	}
	/* The reader is woken: the program's files are found only as long as the program runs. */
	if (bpf_ringbuf_output(&causes, raw, sizeof(*raw), BPF_RB_FORCE_WAKEUP))
		lose_cause(LOSS_CAUSES_RING);
	else
		bpf_map_update_elem(&stacks_told, &id, &now, BPF_ANY);
	return id;
}

/* The number of the present stack, if stacks are recorded. */
static __always_inline __u64 current_stack(bool of_handle)
{
	return tells_stacks ? tell_stack(of_handle) : MOSTRACE_NONE;
}

#endif
