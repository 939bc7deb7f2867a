/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stacks that calls and handles are made from (`record --stacks`). A stack's number is a hash of its addresses, so that
 * probes need no table of them: it is told when it is first seen, and again from time to time.
 */
#ifndef MOSTRACE_STACK_BPF_H
#define MOSTRACE_STACK_BPF_H

#include "causes.bpf.h"
#include "task.bpf.h"

/* <linux/bpf.h> */
enum { BPF_F_USER_STACK = 1 << 8, BPF_F_USER_BUILD_ID = 1 << 11 };

/* <linux/mm.h> */
#define VM_EXEC 4

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct___mm {
	void *mm;
};

struct vm_area_struct___flags {
	unsigned long vm_flags;
};

#pragma clang attribute pop

/* Without `record --stacks` this is false, and the tables below have room for a few entries only. */
const volatile bool tells_stacks;

#ifdef MOSTRACE_LOOPLESS
/* Which addresses are code is not known without bpf_find_vma: user space asks for no stacks. */
static __always_inline __u64 current_stack(bool of_handle)
{
	return MOSTRACE_NONE;
}
#else
/* It is told again after this time, so that a lost entry is not missed for long. */
#define STACK_AGAIN_NS 10000000000ULL

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

_Static_assert(sizeof(struct raw_stack) == 2992, "raw stack");

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

/* The pages of code in which programs' frames were found. */
struct code_page {
	__u64 mm;
	__u64 page;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, struct code_page);
	__type(value, __u8);
} code_pages SEC(".maps");

static long check_code(struct task_struct *task, struct vm_area_struct___flags *vma, bool *is_code)
{
	*is_code = BPF_CORE_READ(vma, vm_flags) & VM_EXEC;
	return 0;
}

/*
 * Cuts the program's stack at the first address that is no code's: behind a function without a frame pointer there may be anything,
 * and every call would seem to have another stack.
 */
static long check_frame(__u32 nth, void *context)
{
	struct task_struct *task = this_task();
	struct code_page at = {};
	__u32 zero = 0;
	struct stack_place *p = bpf_map_lookup_elem(&stack_places, &zero);
	bool is_code = false;
	__u8 known = 1;
	__u64 address, index = nth;
	long found;

	if (!p || index >= STACK_USER)
		return 1;
	asm volatile("%0 &= %1" : "+r"(index) : "i"(STACK_USER - 1));
	address = p->raw.addresses[STACK_KERNEL + index];
	at.mm = (__u64)BPF_CORE_READ((struct task_struct___mm *)task, mm);
	at.page = address >> 12;
	if (bpf_map_lookup_elem(&code_pages, &at))
		return 0;
	found = bpf_find_vma((void *)task, address, check_code, &is_code, 0);
	/* Another task is changing what is mapped: the address may be code's. */
	if (found == -EBUSY)
		return 0;
	if (!found && is_code) {
		bpf_map_update_elem(&code_pages, &at, &known, BPF_ANY);
		return 0;
	}
	p->raw.stack.user = nth;
	return 1;
}

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

static __always_inline __u64 hash_of(const struct raw_stack *raw)
{
	__s64 count = STACK_KERNEL + raw->stack.user, left;
	__u64 hash = raw->stack.tgid;

#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < STACK_KERNEL + STACK_USER; i++) {
		/* What was cut is masked: with a branch, the verifier would walk each way of each step. */
		left = i - count;
		barrier_var(left);
		hash = hash_step(hash, raw->addresses[i] & left >> 63);
	}
	return hash;
}

/*
 * Returns the number of the stack that the current task's program has and, for a handle, the kernel behind it;
 * MOSTRACE_NONE if there is none. Tells the stack if that is news. A function of its own: the verifier walks it once.
 */
__noinline __u64 tell_stack(__u32 of_handle)
{
	struct task_struct *task = this_task();
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
	if (!(OF_TASK(task, flags) & PF_NO_CALL)) {
		size = STACK_USER * sizeof(__u64);
		raw->stack.user = frames_of(bpf_get_task_stack((void *)task, raw->addresses + STACK_KERNEL, size,
							       BPF_F_USER_STACK));
		bpf_loop(raw->stack.user, check_frame, 0, 0);
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

#endif
