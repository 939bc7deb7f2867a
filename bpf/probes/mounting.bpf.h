/* SPDX-License-Identifier: GPL-2.0-only */
/* Tells whether a task is mounting or unmounting a filesystem. */
#ifndef MOSTRACE_MOUNTING_BPF_H
#define MOSTRACE_MOUNTING_BPF_H

#include "mostrace.h"
#include "registers.bpf.h"
#include "window.bpf.h"

/* The numbers of these system calls; filled in by user space. */
const volatile struct {
	__s32 mount;
	__s32 fsconfig;		/* makes the superblock for the newer calls of mount(8) */
	__s32 umount2;
} mount_calls;

/*
 * Returns MOSTRACE_MOUNTS or MOSTRACE_UNMOUNTS if the current task is in such a system call and its registers can be
 * read, which takes BTF types. The filesystem is unmounted on the way back from umount2 to the program, after sys_exit;
 * the registers have the number until the program runs.
 */
static __always_inline __u32 mounting(void)
{
	struct task_struct *task;
	long number;

	if (!HAS_TYPES)
		return 0;
	task = bpf_get_current_task_btf();
	if (task->flags & PF_NO_CALL || is_compat(task))
		return 0;
	number = call_number((void *)bpf_task_pt_regs((void *)task));
	if (number == mount_calls.mount || number == mount_calls.fsconfig)
		return MOSTRACE_MOUNTS;
	return number == mount_calls.umount2 ? MOSTRACE_UNMOUNTS : 0;
}

#endif
