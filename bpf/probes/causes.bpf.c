// SPDX-License-Identifier: GPL-2.0-only
/*
 * The probes for causes: the handles of a journal, the blocks that each dirtied, and the system calls behind them.
 * Probes of a filesystem use raw tracepoints, which exist once the filesystem's module is loaded.
 */
#include "bio.bpf.h"
#include "emptied.bpf.h"
#include "fork.bpf.h"
#include "fuse.bpf.h"
#include "handle.bpf.h"
#include "marked.bpf.h"
#include "steps.bpf.h"
#include "synced.bpf.h"
#include "uring.bpf.h"
#include "written.bpf.h"
#ifndef MOSTRACE_LOOPLESS
#include "atomic.bpf.h"
#include "function.bpf.h"
#endif

char LICENSE[] SEC("license") = "GPL";

_Static_assert(sizeof(struct mostrace_handle) == 120, "handle");
_Static_assert(sizeof(struct mostrace_dirtied) == 48, "dirtied");
_Static_assert(sizeof(struct mostrace_call) == 120, "call");
_Static_assert(sizeof(struct mostrace_f2fs) == 72, "f2fs");
_Static_assert(sizeof(struct mostrace_fork) == 40, "fork");
_Static_assert(sizeof(struct mostrace_served) == 88, "served");
_Static_assert(sizeof(struct mostrace_stack) == 48, "stack");

/* (parent, child) */
SEC("tp_btf/sched_process_fork")
int cause_fork(__u64 *ctx)
{
	return put_fork((struct task_struct *)ctx[0], (struct task_struct *)ctx[1]);
}

#ifndef MOSTRACE_LOOPLESS
/*
 * System calls by their functions; user space says which. If these programs cannot be attached, all calls of the machine
 * pass the two after them.
 */
SEC("kprobe.multi")
int cause_function_enter(struct pt_regs *regs)
{
	return begin_function();
}

SEC("kretprobe.multi")
int cause_function_exit(struct pt_regs *regs)
{
	return end_function(function_result(regs));
}

/* (iocb, from) */
SEC("kprobe.multi")
int cause_function_write(struct pt_regs *regs)
{
	struct writer w;

	if (find_writer(&w))
		begin_write(&w, (struct kiocb *)first_argument(regs));
	return 0;
}

SEC("kretprobe.multi")
int cause_function_written(struct pt_regs *regs)
{
	struct writer w;

	return find_writer(&w) ? end_write(function_result(regs)) : 0;
}

/*
 * From 6.10 on, this program replaces these four. To two programs at one function the kernel's way leads past all that
 * are attached anywhere, which costs half as much as both do.
 */
SEC("kprobe.session")
int cause_session_function(struct pt_regs *regs)
{
	return pass_function(regs);
}

/*
 * These five are attached in this order: an answer, or a read from a pipe, that was not seen would make a thread one that serves
 * several requests at a time.
 *
 * fuse_dev_write
 */
SEC("kprobe.multi")
int cause_atomic_fuse_answer(struct pt_regs *regs)
{
	return begin_device();
}

/* pipe_read: to 6.15 */
SEC("kprobe.multi")
int cause_atomic_fuse_pipe(struct pt_regs *regs)
{
	return begin_pipe();
}

/* anon_pipe_read: from 6.16 on */
SEC("kprobe.multi")
int cause_atomic_fuse_anon_pipe(struct pt_regs *regs)
{
	return begin_pipe();
}

/* fuse_dev_splice_read */
SEC("kprobe.multi")
int cause_atomic_fuse_splice(struct pt_regs *regs)
{
	return begin_device();
}

/* fuse_dev_read */
SEC("kprobe.multi")
int cause_atomic_fuse_read(struct pt_regs *regs)
{
	return begin_device();
}
#endif

/* (regs, number) */
SEC("tp_btf/sys_enter")
int cause_call_enter(__u64 *ctx)
{
	return begin_call((struct pt_regs *)ctx[0], ctx[1]);
}

/* (regs, result) */
SEC("tp_btf/sys_exit")
int cause_call_exit(__u64 *ctx)
{
	return end_call((struct pt_regs *)ctx[0], ctx[1]);
}

/* (regs, number): a daemon of FUSE uses its device, where its functions cannot be probed */
SEC("tp_btf/sys_enter")
int cause_fuse_call(__u64 *ctx)
{
	return look_for_device((struct pt_regs *)ctx[0], ctx[1]);
}

/* (sb, blocks, rsv_blocks, revoke_creds, ip): to 6.1 */
SEC("raw_tp/ext4_journal_start")
int cause_ext4_journal_start(__u64 *ctx)
{
	return prepare_handle((struct super_block *)ctx[0], 0, ctx[4]);
}

/* (sb, blocks, rsv_blocks, revoke_creds, type, ip): from 6.2 on */
SEC("raw_tp/ext4_journal_start_sb")
int cause_ext4_journal_start_sb(__u64 *ctx)
{
	return prepare_handle((struct super_block *)ctx[0], 0, ctx[5]);
}

/* (inode, blocks, rsv_blocks, revoke_creds, type, ip): from 6.2 on */
SEC("raw_tp/ext4_journal_start_inode")
int cause_ext4_journal_start_inode(__u64 *ctx)
{
	struct inode *inode = (struct inode *)ctx[0];

	return prepare_handle(LOAD(inode, i_sb), inode, ctx[5]);
}

/* (inode, ip) */
SEC("raw_tp/ext4_mark_inode_dirty")
int cause_ext4_mark_inode_dirty(__u64 *ctx)
{
	return mark_inode((struct inode *)ctx[0]);
}

/* (folder, dentry) */
SEC("raw_tp/ext4_unlink_enter")
int cause_ext4_unlink_enter(__u64 *ctx)
{
	return tell_unlinked((struct dentry *)ctx[1]);
}

/* (inode, is_metadata, block) */
SEC("raw_tp/ext4_forget")
int cause_ext4_forget(__u64 *ctx)
{
	return forget_block();
}

/* (inode, pos, len, copied): all four. Which of them ext4 calls depends on the mode of the journal. */
SEC("raw_tp/ext4_write_end")
int cause_ext4_write_end(__u64 *ctx)
{
	return tell_filesystem_wrote((struct inode *)ctx[0], ctx[1], ctx[3]);
}

SEC("raw_tp/ext4_da_write_end")
int cause_ext4_da_write_end(__u64 *ctx)
{
	return tell_filesystem_wrote((struct inode *)ctx[0], ctx[1], ctx[3]);
}

SEC("raw_tp/ext4_journalled_write_end")
int cause_ext4_journalled_write_end(__u64 *ctx)
{
	return tell_filesystem_wrote((struct inode *)ctx[0], ctx[1], ctx[3]);
}

SEC("raw_tp/f2fs_write_end")
int cause_f2fs_write_end(__u64 *ctx)
{
	return tell_filesystem_wrote((struct inode *)ctx[0], ctx[1], ctx[3]);
}

/* (file, datasync) */
SEC("raw_tp/ext4_sync_file_enter")
int cause_ext4_sync_file_enter(__u64 *ctx)
{
	return begin_file_sync(LOAD((struct file *)ctx[0], f_inode), ctx[1] ? MOSTRACE_CALL_FDATASYNC : MOSTRACE_CALL_FSYNC);
}

/* (inode, ret) */
SEC("raw_tp/ext4_sync_file_exit")
int cause_ext4_sync_file_exit(__u64 *ctx)
{
	return end_file_sync((__s32)ctx[1]);
}

/* (inode) */
SEC("raw_tp/f2fs_sync_file_enter")
int cause_f2fs_sync_file_enter(__u64 *ctx)
{
	return begin_file_sync((struct inode *)ctx[0], MOSTRACE_CALL_FSYNC);
}

/* (inode, cp_reason, datasync, ret) */
SEC("raw_tp/f2fs_sync_file_exit")
int cause_f2fs_sync_file_exit(__u64 *ctx)
{
	struct call *call = current_call();

	if (call)
		call->entry.cp_reason = ctx[1];
	if (call && call->is_filesystems && ctx[2])
		call->entry.kind = MOSTRACE_CALL_FDATASYNC;
	return end_file_sync((__s32)ctx[3]);
}

/* (sb, wait) */
SEC("raw_tp/f2fs_sync_fs")
int cause_f2fs_sync_fs(__u64 *ctx)
{
	return ask_checkpoint((struct super_block *)ctx[0], ctx[1]);
}

/* (sb, reason, phase) */
SEC("raw_tp/f2fs_write_checkpoint")
int cause_f2fs_write_checkpoint(__u64 *ctx)
{
	return write_checkpoint((struct super_block *)ctx[0], ctx[1], ctx[2]);
}

/* (sb, ...) */
SEC("raw_tp/f2fs_gc_begin")
int cause_f2fs_gc_begin(__u64 *ctx)
{
	return f2fs_step((struct super_block *)ctx[0], MOSTRACE_F2FS_GC);
}

/* The same. */
SEC("raw_tp/f2fs_gc_end")
int cause_f2fs_gc_end(__u64 *ctx)
{
	return f2fs_step((struct super_block *)ctx[0], MOSTRACE_F2FS_COLLECTED);
}

/* (dev, tid, type, line_no, requested_blocks) */
SEC("raw_tp/jbd2_handle_start")
int cause_jbd2_handle_start(__u64 *ctx)
{
	return begin_handle(ctx[0], ctx[1], ctx[2]);
}

/* The same. */
SEC("raw_tp/jbd2_handle_restart")
int cause_jbd2_handle_restart(__u64 *ctx)
{
	return restart_handle(ctx[0], ctx[1]);
}

/* (dev, tid, type, line_no, interval, sync, requested_blocks, dirtied_blocks) */
SEC("raw_tp/jbd2_handle_stats")
int cause_jbd2_handle_stats(__u64 *ctx)
{
	struct handle_end end = {
		.s_dev = ctx[0],
		.tid = ctx[1],
		.type = ctx[2],
		.sync = ctx[5],
		.requested = ctx[6],
		.dirtied = ctx[7],
	};

	return end_handle(&end);
}

/*
 * (handle, bh, credit): of kernels with the patch of kernel-patches/upstream/jbd2. The credit says whether the handle is the
 * transaction's first to modify the buffer.
 *
 * The first of these three programs that can be attached is used; if none can, blocks are found when the handle ends.
 */
SEC("raw_tp/jbd2_dirty_metadata")
int cause_modify_told(__u64 *ctx)
{
	struct buffer_head *bh = (struct buffer_head *)ctx[1];

	return modify_buffer(bh, LOAD(bh, b_private), ctx[2]);
}

/* (handle, bh) */
SEC("fentry/jbd2_journal_dirty_metadata")
int cause_modify_fentry(__u64 *ctx)
{
	return modify((struct buffer_head *)ctx[1]);
}

SEC("kprobe/jbd2_journal_dirty_metadata")
int cause_modify_kprobe(struct pt_regs *regs)
{
	return modify((struct buffer_head *)second_argument(regs));
}

/* From 6.4 on; earlier kernels have io_uring_submit_sqe. */
SEC("raw_tp/io_uring_submit_req")
int cause_uring_submit_req(__u64 *ctx)
{
	return submit_uring(ARG(ctx, uring_submit_at));
}

SEC("raw_tp/io_uring_submit_sqe")
int cause_uring_submit_sqe(__u64 *ctx)
{
	return submit_uring(ARG(ctx, uring_submit_at));
}

/* (ring, request, cqe); before 6.15 (ring, request, user_data, result, ...) */
SEC("raw_tp/io_uring_complete")
int cause_uring_complete(__u64 *ctx)
{
	__s32 result;

	if (uring_has_cqe)
		result = BPF_CORE_READ((struct io_uring_cqe *)ctx[2], res);
	else
		result = ctx[3];
	return complete_uring((struct io_kiocb *)ctx[1], result);
}
