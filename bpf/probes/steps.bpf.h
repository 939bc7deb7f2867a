/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * f2fs's checkpoints, the tasks that ask for them, and when f2fs collects garbage. A checkpoint is written by its own
 * thread for all tasks that have asked by then, or by the task that needs it.
 */
#ifndef MOSTRACE_STEPS_BPF_H
#define MOSTRACE_STEPS_BPF_H

#include "call.bpf.h"
#include "checkpoint.bpf.h"

static __always_inline int put_f2fs(__u32 s_dev, __u16 step, __u16 reason)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct mostrace_f2fs entry = {
		.s_dev = s_dev,
		.pid = id,
		.tgid = id >> 32,
		.uid = current_uid(),
		.step = step,
		.reason = reason,
		.call = running_kind(),
	};

	entry.head = cause_head(MOSTRACE_F2FS, sizeof(entry), bpf_ktime_get_ns());
	if (OF_TASK(this_task(), flags) & PF_KTHREAD)
		entry.head.flags = MOSTRACE_KERNEL_THREAD;
	current_comm(entry.comm);
	put_cause(&entry, sizeof(entry));
	return 0;
}

static __always_inline int f2fs_step(struct super_block *sb, __u16 step)
{
	__u32 s_dev = LOAD(sb, s_dev);

	return is_traced_filesystem(s_dev) ? put_f2fs(s_dev, step, 0) : 0;
}

static __always_inline int ask_checkpoint(struct super_block *sb, bool wait)
{
	struct call *call = current_call();
	__u32 s_dev = LOAD(sb, s_dev);

	if (!wait || !is_traced_filesystem(s_dev))
		return 0;
	/* sync has no file as argument; this shows that it involves the filesystem. */
	if (call && call->entry.kind == MOSTRACE_CALL_SYNC) {
		call->is_ours = true;
		call->entry.s_dev = s_dev;
	}
	return put_f2fs(s_dev, MOSTRACE_F2FS_ASKED, 0);
}

static __always_inline int write_checkpoint(struct super_block *sb, __u16 reason, __u64 phase)
{
	__u32 s_dev = LOAD(sb, s_dev);

	if (!is_traced_filesystem(s_dev))
		return 0;
	switch (checkpoint_phase(phase)) {
	case CP_PHASE_START_BLOCK_OPS:
		return put_f2fs(s_dev, MOSTRACE_F2FS_CHECKPOINT, reason);
	case CP_PHASE_FINISH_CHECKPOINT:
		return put_f2fs(s_dev, MOSTRACE_F2FS_WRITTEN, reason);
	}
	return 0;
}

#endif
