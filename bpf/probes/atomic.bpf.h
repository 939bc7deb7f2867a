/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The journal's handles, recorded by programs that run with preemption disabled: at functions, and at tracepoints as events of
 * perf.
 *
 * The kernel skips a program that is already running on the CPU. A task can be preempted within a program at a raw
 * tracepoint (since 7.2) or of fentry (always), and as long as it waits, what the other tasks on its CPU do is not recorded. These
 * programs replace those, one by one, where the kernel has them and can preempt those.
 */
#ifndef MOSTRACE_ATOMIC_BPF_H
#define MOSTRACE_ATOMIC_BPF_H

#include "fork.bpf.h"
#include "handle.bpf.h"
#include "marked.bpf.h"
#include "registers.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct trace_event_raw_jbd2_handle_start_class {
	__u32 dev;
	__u32 tid;
	__u32 type;
};

struct trace_event_raw_jbd2_handle_stats {
	__u32 dev;
	__u32 tid;
	__u32 type;
	__s32 sync;
	__s32 requested_blocks;
	__s32 dirtied_blocks;
};

#pragma clang attribute pop

/* wake_up_new_task(child) */
SEC("kprobe.multi")
int cause_atomic_fork(struct pt_regs *regs)
{
	return put_fork(this_task(), (struct task_struct *)first_argument(regs));
}

/* __ext4_journal_start_sb(inode, sb, line, type, ...): from 6.2 on */
SEC("kprobe.multi")
int cause_atomic_journal_start(struct pt_regs *regs)
{
	struct super_block *sb = (void *)second_argument(regs);
	struct inode *inode = (void *)first_argument(regs);

	return prepare_handle(sb, inode, function_caller(regs));
}

/* __ext4_mark_inode_dirty(handle, inode, ...) */
SEC("kprobe.multi")
int cause_atomic_mark_inode_dirty(struct pt_regs *regs)
{
	return mark_inode((struct inode *)second_argument(regs));
}

/* ext4_unlink(folder, dentry) */
SEC("kprobe.multi")
int cause_atomic_unlink(struct pt_regs *regs)
{
	return tell_unlinked((struct dentry *)second_argument(regs));
}

/* __ext4_forget */
SEC("kprobe.multi")
int cause_atomic_forget(struct pt_regs *regs)
{
	return forget_block();
}

/* jbd2_journal_dirty_metadata(handle, bh) */
SEC("kprobe.multi")
int cause_atomic_modify(struct pt_regs *regs)
{
	return modify((struct buffer_head *)second_argument(regs));
}

/* jbd2__journal_restart(handle, ...) */
SEC("kprobe.multi")
int cause_atomic_restart(struct pt_regs *regs)
{
	return begin_restart((struct jbd2_journal_handle *)first_argument(regs));
}

/* aio_fsync(request, iocb, datasync): in io_submit, which is not seen where calls are traced by functions */
SEC("kprobe.multi")
int cause_atomic_aio_fsync(struct pt_regs *regs)
{
	struct task_struct *task = this_task();

	return is_compat(task) ? 0 : submit_aio((void *)bpf_task_pt_regs((void *)task), task);
}

SEC("tp/jbd2/jbd2_handle_start")
int cause_atomic_handle_start(struct trace_event_raw_jbd2_handle_start_class *event)
{
	return begin_handle(event->dev, event->tid, event->type);
}

SEC("tp/jbd2/jbd2_handle_restart")
int cause_atomic_handle_restart(struct trace_event_raw_jbd2_handle_start_class *event)
{
	return restart_handle(event->dev, event->tid);
}

SEC("tp/jbd2/jbd2_handle_stats")
int cause_atomic_handle_stats(struct trace_event_raw_jbd2_handle_stats *event)
{
	struct handle_end end = {
		.s_dev = event->dev,
		.tid = event->tid,
		.type = event->type,
		.sync = event->sync,
		.requested = event->requested_blocks,
		.dirtied = event->dirtied_blocks,
	};

	return end_handle(&end);
}

#endif
