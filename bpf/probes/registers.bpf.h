/* SPDX-License-Identifier: GPL-2.0-only */
/* The registers of a program that entered the kernel: the number and the arguments of its system call. */
#ifndef MOSTRACE_REGISTERS_BPF_H
#define MOSTRACE_REGISTERS_BPF_H

#include "task.bpf.h"
#include "tracepoint.bpf.h"
#include "window.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs;

struct pt_regs___x86 {
	unsigned long di;
	unsigned long si;
	unsigned long dx;
	unsigned long r10;
	unsigned long r8;
	unsigned long r9;
	unsigned long orig_ax;
};

struct pt_regs___arm64 {
	__u64 regs[31];
	__s32 syscallno;
};

struct thread_info___x86 {
	__u32 status;
};

struct task_struct___x86 {
	struct thread_info___x86 thread_info;
};

struct thread_info___arm64 {
	unsigned long flags;
};

struct task_struct___arm64 {
	struct thread_info___arm64 thread_info;
};

#pragma clang attribute pop

/* arch/x86/include/asm/thread_info.h: a call of a 32-bit program, which has other numbers */
#define TS_COMPAT 0x0002
/* arch/arm64/include/asm/thread_info.h: the same of AArch32 */
#define TIF_32BIT 22

/* `regs` is what a BTF tracepoint passes; its fields can be loaded directly. */
static __always_inline __u64 call_argument(struct pt_regs *regs, __u32 n)
{
	struct pt_regs___arm64 *arm64 = (void *)regs;
	struct pt_regs___x86 *x86 = (void *)regs;

	if (!bpf_core_field_exists(x86->di))
		return n == 0 ? arm64->regs[0] : n == 1 ? arm64->regs[1] :
		       n == 2 ? arm64->regs[2] : n == 3 ? arm64->regs[3] :
		       n == 4 ? arm64->regs[4] : arm64->regs[5];
	return n == 0 ? x86->di : n == 1 ? x86->si : n == 2 ? x86->dx : n == 3 ? x86->r10 :
	       n == 4 ? x86->r8 : x86->r9;
}

/*
 * A register of a kprobe, whose context they are; its place is the same in the interface to programs (<asm/ptrace.h>), in words.
 */
#define KPROBE_REGISTER(regs, x86, arm64) (is_x86() ? CTX(regs, x86) : CTX(regs, arm64))

enum { X86_AX = 10, X86_SI = 13, X86_DI = 14, X86_SP = 19, ARM64_X0 = 0, ARM64_X1 = 1, ARM64_LR = 30 };

static __always_inline bool is_x86(void)
{
	return bpf_core_field_exists(((struct pt_regs___x86 *)0)->di);
}

/* Return an argument of the function that has the kprobe. */
static __always_inline __u64 first_argument(struct pt_regs *regs)
{
	return KPROBE_REGISTER(regs, X86_DI, ARM64_X0);
}

static __always_inline __u64 second_argument(struct pt_regs *regs)
{
	return KPROBE_REGISTER(regs, X86_SI, ARM64_X1);
}

/* Returns the address to which the function that has the kprobe returns: it lies in the caller. */
static __always_inline __u64 function_caller(struct pt_regs *regs)
{
	__u64 at = KPROBE_REGISTER(regs, X86_SP, ARM64_LR);

	return is_x86() ? PEEK_AT(__u64, at) : at;
}

/* Returns the result of the function that has the kretprobe. */
static __always_inline __u64 function_result(struct pt_regs *regs)
{
	return KPROBE_REGISTER(regs, X86_AX, ARM64_X0);
}

static __always_inline long call_number(struct pt_regs *regs)
{
	if (bpf_core_field_exists(((struct pt_regs___x86 *)regs)->orig_ax))
		return ((struct pt_regs___x86 *)regs)->orig_ax;
	return ((struct pt_regs___arm64 *)regs)->syscallno;
}

/* Begins with the call's registers: from then on, running_number() knows where they are. */
#ifdef MOSTRACE_LOOPLESS
/* The distance from the beginning of any task's stack to its registers; 0 before the first call is seen. */
static __u64 registers_at;

static __always_inline void learn_registers(struct pt_regs *regs)
{
	__u64 at = 0;

	if (registers_at)
		return;
	/* The verifier allows no arithmetic with what a tracepoint passes, but with a copy of it. */
	bpf_probe_read_kernel(&at, sizeof(at), &regs);
	registers_at = at - (__u64)OF_TASK(this_task(), stack);
}

static __always_inline long running_number(struct task_struct *task)
{
	char *regs = (char *)OF_TASK(task, stack) + registers_at;

	if (!registers_at)
		return -1;
	if (bpf_core_field_exists(((struct pt_regs___x86 *)regs)->orig_ax))
		return BPF_CORE_READ((struct pt_regs___x86 *)regs, orig_ax);
	return BPF_CORE_READ((struct pt_regs___arm64 *)regs, syscallno);
}
#else
static __always_inline void learn_registers(struct pt_regs *regs) {}

/* Returns the number of the system call that the current task is in. */
static __always_inline long running_number(struct task_struct *task)
{
	return call_number((void *)bpf_task_pt_regs((void *)task));
}
#endif

/* Returns true if the task's calls have the numbers of another architecture. */
static __always_inline bool is_compat(struct task_struct *task)
{
	struct task_struct___x86 *x86 = (void *)task;
	struct task_struct___arm64 *arm64 = (void *)task;

	if (is_x86())
		return bpf_core_field_exists(x86->thread_info.status) &&
		       OF_TASK(x86, thread_info.status) & TS_COMPAT;
	return OF_TASK(arm64, thread_info.flags) & 1UL << TIF_32BIT;
}

#endif
