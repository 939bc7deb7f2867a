/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * System calls that change a file of the traced filesystem or write it out. A call with a descriptor is recorded if the
 * descriptor is such a file. A call with a path is recorded if it joined the journal, and one with a file of a filesystem that is
 * stacked on others (an overlay) if the traced filesystem tells which of its files it was passed on to.
 */
#ifndef MOSTRACE_CALL_BPF_H
#define MOSTRACE_CALL_BPF_H

#include "aio.bpf.h"
#include "area.bpf.h"
#include "current.bpf.h"
#include "firstbytes.bpf.h"
#include "stack.bpf.h"
#include "syscall.bpf.h"

/* User space's description of each call number: enum mostrace_call_kind, and the meaning of its arguments. */
#define CALL_KIND 0x1f
#define CALL_INSIDE 0x20	/* reported only with handles, not recorded itself */
#define CALL_PATH 0x40		/* its first argument is not a descriptor */
#define CALL_AT 0x80		/* its fourth argument is an offset */
#define CALL_VECTOR 0x100	/* its second argument is an array of buffers */
#define CALL_IOCTL 0x200	/* its second argument determines the kind */
#define CALL_THIRD 0x400	/* its third argument is the descriptor, and its fourth points to the offset */
#define CALL_MMAP 0x800		/* its arguments are those of mmap */
#define CALL_RWF 0x4000		/* its sixth argument has flags RWF_… */
#define CALL_AIO 0x8000		/* it is io_submit: its requests are remembered, it is not recorded itself */

const volatile __u16 call_kinds[CALLS_MAX];

static __always_inline __u16 kind_of_number(long number)
{
	return number >= 0 && number < CALLS_MAX ? call_kinds[number & (CALLS_MAX - 1)] : 0;
}

static __always_inline __u16 kind_of_ioctl(__u32 command)
{
	switch (command) {
	case F2FS_IOC_START_ATOMIC_WRITE:
	case F2FS_IOC_START_ATOMIC_REPLACE:
		return MOSTRACE_CALL_ATOMIC_START;
	case F2FS_IOC_COMMIT_ATOMIC_WRITE:
		return MOSTRACE_CALL_ATOMIC_COMMIT;
	case F2FS_IOC_ABORT_ATOMIC_WRITE:
		return MOSTRACE_CALL_ATOMIC_ABORT;
	case F2FS_IOC_GARBAGE_COLLECT:
	case F2FS_IOC_GARBAGE_COLLECT_RANGE:
	case F2FS_IOC_FLUSH_DEVICE:
		return MOSTRACE_CALL_GC;
	case F2FS_IOC_WRITE_CHECKPOINT:
		return MOSTRACE_CALL_CHECKPOINT;
	case FIFREEZE:
	case EXT4_IOC_CHECKPOINT:
		return MOSTRACE_CALL_SYNC;
	case FS_IOC_RESVSP:
	case FS_IOC_RESVSP64:
	case FS_IOC_UNRESVSP:
	case FS_IOC_UNRESVSP64:
	case FS_IOC_ZERO_RANGE:
		return MOSTRACE_CALL_FALLOCATE;
	}
	return MOSTRACE_CALL_OTHER;
}

/*
 * Returns true if the file's filesystem is stacked on others and passes calls on to them: an overlay, eCryptfs, or FUSE with backing
 * files.
 */
static __always_inline bool is_stacked(struct file *file)
{
	return LOAD(file, f_inode, i_sb, s_stack_depth) > 0;
}

/* Returns the open file if it belongs to the traced filesystem, as `written` does, or to one that may be stacked on it. */
static __always_inline struct file *traced_file(__u32 fd, struct file *written)
{
	struct file *file = open_file(fd);

	if (file && file == written)
		return file;
	if (!file || (!is_traced_filesystem(LOAD(file, f_inode, i_sb, s_dev)) && !is_stacked(file)))
		return 0;
	return file;
}

static __always_inline void tell_file(struct call *call, struct file *file, struct file *written)
{
	call->file = file;
	if (file != written && is_stacked(file))
		return;
	call->is_ours = true;
	/* syncfs has a file as argument, but concerns the whole filesystem. */
	if (call->entry.kind != MOSTRACE_CALL_SYNC)
		tell_inode(&call->entry, LOAD(file, f_inode));
}

/* <linux/mman.h>, <linux/fs.h> */
#define MAP_SHARED 1
#define MAP_SHARED_VALIDATE 3
#define MAP_TYPE 0xf
#define MAP_ANONYMOUS 0x20
#define FMODE_WRITE 2

/*
 * Returns true if an mmap makes a shared mapping of a file. If the file is open for writing, mprotect may let the
 * program write to the mapping later.
 */
static __always_inline bool is_shared_mapping(struct pt_regs *regs)
{
	__u32 flags = call_argument(regs, 3), type = flags & MAP_TYPE;

	return (type == MAP_SHARED || type == MAP_SHARED_VALIDATE) && !(flags & MAP_ANONYMOUS);
}

/* Returns the file of a call with a descriptor if the call is to be recorded, otherwise NULL. */
static __always_inline struct file *described_file(__u16 how, struct pt_regs *regs, struct file *written)
{
	struct file *file;

	if (!(how & CALL_MMAP))
		return traced_file(call_argument(regs, how & CALL_THIRD ? 2 : 0), written);
	if (!is_shared_mapping(regs))
		return 0;
	file = traced_file(call_argument(regs, 4), 0);
	return file && LOAD(file, f_mode) & FMODE_WRITE ? file : 0;
}

/* Finds the range of the file that the call asks for. The length that a write() wrote is known when it returns. */
static __always_inline void find_range(struct call *c, __u16 how, struct pt_regs *regs)
{
	struct mostrace_call *call = &c->entry;

	/* The filesystem tells the range of a fallocate by ioctl. */
	if (how & CALL_IOCTL)
		return;
	switch (call->kind) {
	case MOSTRACE_CALL_WRITE:
		if (how & CALL_AT)
			call->offset = call_argument(regs, 3);
		if (!(how & CALL_VECTOR))
			c->buffer = (void *)call_argument(regs, 1);
		if (how & CALL_RWF)
			c->rwf = call_argument(regs, 5);
		break;
	case MOSTRACE_CALL_SYNC_RANGE:
		call->offset = call_argument(regs, 1);
		call->bytes = call_argument(regs, 2);
		break;
	case MOSTRACE_CALL_TRUNCATE:
		call->offset = call_argument(regs, 1);
		break;
	case MOSTRACE_CALL_FALLOCATE:
		call->offset = call_argument(regs, 2);
		call->bytes = call_argument(regs, 3);
		*(__u32 *)call->first_bytes = call_argument(regs, 1);
		break;
	case MOSTRACE_CALL_SPLICE:
		if (how & CALL_THIRD && call_argument(regs, 3))
			bpf_probe_read_user(&call->offset, sizeof(call->offset),
					    (void *)call_argument(regs, 3));
		break;
	case MOSTRACE_CALL_MMAP:
		call->offset = call_argument(regs, 5);
		call->bytes = call_argument(regs, 1);
		break;
	}
}

static __always_inline bool is_recorded(__u16 how)
{
	return how & (CALL_KIND | CALL_IOCTL) && !(how & CALL_INSIDE);
}

/*
 * Remembers a call that begins. Returns it, or NULL if it is not to be recorded. `written` is the file that the traced filesystem is about
 * to write, or NULL. If `was_open` is given, it says afterwards whether the task's call before has not ended yet; it is given up.
 */
static __always_inline struct call *remember_call(struct pt_regs *regs, __u16 how, struct file *written, bool *was_open)
{
	__u16 kind = how & CALL_IOCTL ? kind_of_ioctl(call_argument(regs, 1)) : how & CALL_KIND;
	struct file *file = 0;
	struct call *call;

	if (kind == MOSTRACE_CALL_OTHER)
		return 0;
	if (!(how & CALL_PATH)) {
		file = described_file(how, regs, written);
		if (!file)
			return 0;
	}
	call = room_for_call();
	if (!call)
		return 0;
	if (was_open)
		*was_open = call->entry.kind != MOSTRACE_CALL_OTHER;
	*call = (struct call){ .entry.kind = kind, .entry.offset = MOSTRACE_NONE };
	if (file)
		tell_file(call, file, written);
	/* sync concerns every filesystem. */
	if (kind == MOSTRACE_CALL_SYNC)
		call->is_ours = true;
	find_range(call, how, regs);
	call->entry.start_ns = bpf_ktime_get_ns();
	tell_task(&call->entry);
	return call;
}

static __always_inline int begin_call(struct pt_regs *regs, long number)
{
	struct task_struct *task = this_task();
	__u16 how = kind_of_number(number);

	learn_registers(regs);
	if ((!is_recorded(how) && !(how & CALL_AIO)) || is_compat(task))
		return 0;
	if (how & CALL_AIO)
		return submit_aio(regs, task);
	remember_call(regs, how, 0, 0);
	return 0;
}

/* <linux/fs.h>. O_SYNC has the bit of O_DSYNC, and IOCB_DSYNC is RWF_DSYNC. */
#define O_DSYNC 00010000
#define S_SYNC 1
#define SB_SYNCHRONOUS 0x10
#define RWF_DSYNC 2
#define RWF_SYNC 4

/* Returns true if a write returns only when it is durable: iocb_is_dsync of <linux/fs.h>. */
static __always_inline bool writes_through(struct file *file, __u32 rwf)
{
	struct inode *inode = LOAD(file, f_inode);

	return rwf & (RWF_DSYNC | RWF_SYNC) || LOAD(file, f_flags) & O_DSYNC || LOAD(inode, i_flags) & S_SYNC ||
	       LOAD(inode, i_sb, s_flags) & SB_SYNCHRONOUS;
}

/* Returns true if a fallocate returns only when it is durable: ext4_fallocate looks at the file's flags alone. */
static __always_inline bool allocates_through(struct file *file, struct inode *below)
{
	struct inode *inode = below ?: LOAD(file, f_inode);

	return LOAD(file, f_flags) & O_DSYNC && LOAD(inode, i_sb, s_magic) == EXT4_SUPER_MAGIC;
}

#define O_APPEND 00002000

/*
 * Tells where the call wrote. The filesystem's word is exact; the file's position may have been moved by another
 * thread. With O_APPEND, pwrite64 writes at the end of the file and not at its offset.
 */
static __always_inline __u64 written_at(const struct call *call, struct file *file, long bytes)
{
	if (call->written_to)
		return call->written_to - bytes;
	if (call->entry.offset == MOSTRACE_NONE)
		return LOAD(file, f_pos) - bytes;
	return LOAD(file, f_flags) & O_APPEND ? MOSTRACE_NONE : call->entry.offset;
}

static __always_inline void tell_written(struct call *call, long bytes)
{
	struct mostrace_call *entry = &call->entry;
	struct file *file = call->file;

	entry->bytes = bytes;
	entry->offset = written_at(call, file, bytes);
	tell_first_bytes(entry, call->buffer, bytes);
}

/* Takes the positive result of a call: a number of bytes, or the address of a mapping, which is not recorded. */
static __always_inline void tell_result(struct call *call, long result)
{
	switch (call->entry.kind) {
	case MOSTRACE_CALL_WRITE:
	case MOSTRACE_CALL_SPLICE:
		tell_written(call, result);
		break;
	case MOSTRACE_CALL_MMAP:
		call->entry.result = 0;
		break;
	}
}

/* Tells whether a call that succeeded asked for durability, beside what it did. */
static __always_inline void tell_durable(struct call *call)
{
	struct mostrace_call *entry = &call->entry;
	struct file *file = call->file;
	bool asks = call->asks;

	switch (entry->kind) {
	case MOSTRACE_CALL_WRITE:
	case MOSTRACE_CALL_SPLICE:
		asks |= entry->bytes && writes_through(file, call->rwf);
		break;
	case MOSTRACE_CALL_FALLOCATE:
		asks |= allocates_through(file, call->below);
		break;
	}
	if (asks)
		entry->head.flags |= MOSTRACE_CALL_THROUGH;
}

/* Finds the file that an mmap of a stacked filesystem's file has mapped at `address`: an overlay maps the file below it. */
static __always_inline void tell_mapped(struct call *call, __u64 address)
{
	struct area area = { .address = address };
	bool is_found = find_area(this_task(), &area);
	struct file *file = area.file;
	struct inode *inode;

	/* Another task may be changing the mappings. */
	if (!is_found || !file) {
		lose_cause(LOSS_CAUSES_TASKS);
		return;
	}
	inode = BPF_CORE_READ(file, f_inode);
	if (is_traced_filesystem(BPF_CORE_READ(inode, i_sb, s_dev)))
		tell_below(call, inode);
}

/* Names the file that the call was about. What a filesystem told has no open file here, so any of its names is taken. */
static __always_inline void name_file(const struct call *call)
{
	/*
	 * These are copied to local variables: without BTF types, LOAD relocates its argument, and struct call is not a kernel type.
	 */
	struct inode *below = call->below;
	struct file *file = call->file;
	struct dentry *dentry;

	if (below) {
		dentry = inode_dentry(below);
		if (dentry)
			name_called(below, dentry);
	} else if (file) {
		name_called(LOAD(file, f_inode), LOAD(file, f_path.dentry));
	}
}

/* Ends the task's call, and puts its entry. */
static __always_inline void finish_call(struct call *call, long result)
{
	struct mostrace_call *entry = &call->entry;

	if (entry->kind == MOSTRACE_CALL_MMAP && !call->is_ours && result > 0)
		tell_mapped(call, result);
	if (call->is_ours) {
		entry->head = cause_head(MOSTRACE_CALL, sizeof(*entry), bpf_ktime_get_ns());
		entry->head.sector = current_stack(false);
		entry->result = result;
		if (result > 0)
			tell_result(call, result);
		if (result >= 0)
			tell_durable(call);
		if (entry->kind == MOSTRACE_CALL_FALLOCATE && entry->offset != MOSTRACE_NONE)
			entry->head.flags |= MOSTRACE_CALL_MODE;
		if (result >= 0 && !is_named_last(entry))
			name_file(call);
		put_call(call);
	}
	close_call(call);
}

static __always_inline int end_call(struct pt_regs *regs, long result)
{
	struct call *call;

	if (!is_recorded(kind_of_number(call_number(regs))))
		return 0;
	call = current_call();
	if (call)
		finish_call(call, result);
	return 0;
}

/* Returns the kind of the system call that the task is in, whether it is recorded or not. */
static __always_inline __u8 running_kind(void)
{
	struct task_struct *task = this_task();
	struct call *call = current_call();

	if (call)
		return call->entry.kind;
	if (OF_TASK(task, flags) & PF_NO_CALL || is_compat(task))
		return MOSTRACE_CALL_OTHER;
	return kind_of_number(running_number(task)) & CALL_KIND;
}

#endif
