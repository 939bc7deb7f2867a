// SPDX-License-Identifier: GPL-2.0-only
/*
 * System calls that change a file of the traced filesystem or write it out. A call with a
 * descriptor is recorded if the descriptor is such a file; a call with a path is recorded if it
 * joined the journal. Requests to io_uring are not recorded.
 */
#include <linux/compat.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/ptrace.h>
#include <linux/sched/task_stack.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <asm/syscall.h>
#include "call.h"
#include "compat.h"
#include "filesystems.h"
#include "head.h"
#include "ring.h"
#include "syscalls.h"
#include "task.h"
#include "thread.h"

/* Returns the call that the thread is in, if that call is recorded; otherwise NULL. */
struct mostrace_call *mostrace_call_under_way(struct mostrace_thread *thread)
{
	return thread && thread->call.kind != MOSTRACE_CALL_OTHER ? &thread->call : NULL;
}

/* A call of a 32-bit program has other numbers; nothing is known of it. */
static u16 how_of(long number)
{
	return in_compat_syscall() ? 0 : mostrace_syscall(number);
}

/* Returns the kind of the system call that the task is in, whether it is recorded or not. */
enum mostrace_call_kind mostrace_kind_running(struct mostrace_thread *thread)
{
	struct mostrace_call *call = mostrace_call_under_way(thread);

	if (call)
		return call->kind;
	if (current->flags & (PF_KTHREAD | PF_IO_WORKER))
		return MOSTRACE_CALL_OTHER;
	return how_of(syscall_get_nr(current, current_pt_regs())) & MOSTRACE_SYSCALL_KIND;
}

void mostrace_call_tell_inode(struct mostrace_call *call, struct inode *inode)
{
	call->ino = inode->i_ino;
	call->generation = inode->i_generation;
	call->s_dev = inode->i_sb->s_dev;
}

/* Returns the open file if it belongs to a traced filesystem. The caller puts it. */
static struct file *traced_file(unsigned int fd)
{
	struct file *file = fget(fd);

	if (file && !mostrace_filesystem_wanted(file_inode(file)->i_sb->s_dev)) {
		fput(file);
		return NULL;
	}
	return file;
}

/*
 * Finds the range of the file that the call asks for. The length that a write() wrote is known when
 * it returns.
 */
static void find_range(struct mostrace_thread *thread, u16 how, const unsigned long *args)
{
	struct mostrace_call *call = &thread->call;

	thread->buffer = NULL;
	switch (call->kind) {
	case MOSTRACE_CALL_WRITE:
		if (how & MOSTRACE_SYSCALL_AT)
			call->offset = args[3];
		if (!(how & MOSTRACE_SYSCALL_VECTOR))
			thread->buffer = (void __user *)args[1];
		break;
	case MOSTRACE_CALL_SYNC_RANGE:
		call->offset = args[1];
		call->bytes = args[2];
		break;
	case MOSTRACE_CALL_TRUNCATE:
		call->offset = args[1];
		break;
	case MOSTRACE_CALL_FALLOCATE:
		call->offset = args[2];
		call->bytes = args[3];
		break;
	}
}

/*
 * Returns true if the call returns only when what it does is durable: a write as iocb_is_dsync()
 * says, and a fallocate as ext4_fallocate() does.
 */
static bool asks_for_durability(u16 how, const struct file *file, const unsigned long *args)
{
	const struct inode *inode = file_inode(file);

	switch (how & MOSTRACE_SYSCALL_KIND) {
	case MOSTRACE_CALL_WRITE:
		return file->f_flags & O_DSYNC || IS_SYNC(inode) ||
		       (how & MOSTRACE_SYSCALL_RWF && args[5] & (RWF_DSYNC | RWF_SYNC));
	case MOSTRACE_CALL_FALLOCATE:
		return file->f_flags & O_DSYNC && inode->i_sb->s_magic == EXT4_SUPER_MAGIC;
	default:
		return false;
	}
}

static void name_task(struct mostrace_call *call)
{
	struct mostrace_task task;

	mostrace_task_is_current(&task, ktime_get_ns());
	call->start_ns = task.time_ns;
	call->pid = task.pid;
	call->tgid = task.tgid;
	call->uid = task.uid;
	memcpy(call->comm, task.comm, sizeof(call->comm));
}

static void begin(struct file *file, u16 how, const unsigned long *args)
{
	struct mostrace_thread *thread = mostrace_thread_room();

	if (!thread)
		return;
	thread->call = (struct mostrace_call){
		.kind = how & MOSTRACE_SYSCALL_KIND,
		.offset = MOSTRACE_NONE,
	};
	/* sync concerns every filesystem. */
	thread->is_ours = file || thread->call.kind == MOSTRACE_CALL_SYNC;
	thread->asks = file && asks_for_durability(how, file, args);
	/* syncfs has a file as argument, but concerns the whole filesystem. */
	if (file && thread->call.kind != MOSTRACE_CALL_SYNC)
		mostrace_call_tell_inode(&thread->call, file_inode(file));
	find_range(thread, how, args);
	name_task(&thread->call);
}

static bool is_recorded(u16 how)
{
	return how & MOSTRACE_SYSCALL_KIND && !(how & MOSTRACE_SYSCALL_INSIDE);
}

void mostrace_call_begun(struct pt_regs *regs, long number)
{
	u16 how = how_of(number);
	struct file *file = NULL;
	unsigned long args[6];

	if (!is_recorded(how))
		return;
	mostrace_syscall_arguments(regs, args);
	if (!(how & MOSTRACE_SYSCALL_PATH)) {
		file = traced_file(args[0]);
		if (!file)
			return;
	}
	begin(file, how, args);
	if (file)
		fput(file);
}

/* Longer writes contain pages, not headers. */
#define SHORT_WRITE 64

/*
 * Returns the offset at which a write without an offset began; MOSTRACE_NONE if the descriptor
 * refers to another file by now.
 */
static u64 position_before(const struct mostrace_call *call, struct pt_regs *regs, long bytes)
{
	u64 position = MOSTRACE_NONE;
	unsigned long args[6];
	struct file *file;

	mostrace_syscall_arguments(regs, args);
	file = traced_file(args[0]);
	if (!file)
		return MOSTRACE_NONE;
	if (file_inode(file)->i_ino == call->ino)
		position = file->f_pos - bytes;
	fput(file);
	return position;
}

static void tell_written(struct mostrace_thread *thread, struct pt_regs *regs, long bytes)
{
	struct mostrace_call *call = &thread->call;

	call->bytes = bytes;
	if (call->offset == MOSTRACE_NONE)
		call->offset = position_before(call, regs, bytes);
	if (thread->buffer && bytes >= sizeof(call->first_bytes) && bytes <= SHORT_WRITE &&
	    !mostrace_copy_from_user(call->first_bytes, thread->buffer, sizeof(call->first_bytes)))
		call->head.flags |= MOSTRACE_CALL_FIRST;
}

void mostrace_call_ended(struct pt_regs *regs, long result)
{
	struct mostrace_thread *thread = mostrace_thread();
	struct mostrace_call *call = mostrace_call_under_way(thread);

	if (!thread)
		return;
	/* A handle that was announced and did not begin, as in an ext4 without a journal, does not begin any more. */
	if (thread->state == MOSTRACE_HANDLE_PREPARED)
		thread->state = MOSTRACE_HANDLE_NONE;
	if (call && thread->is_ours) {
		call->head = mostrace_head_now(MOSTRACE_CALL, sizeof(*call));
		call->result = result;
		if (thread->asks)
			call->head.flags |= MOSTRACE_CALL_THROUGH;
		if (call->kind == MOSTRACE_CALL_WRITE && result > 0)
			tell_written(thread, regs, result);
		mostrace_put(&call->head);
	}
	thread->call.kind = MOSTRACE_CALL_OTHER;
	mostrace_thread_settle(thread);
}

/* Records the inode that the path of an unlink led to. */
void mostrace_call_unlinks(struct inode *inode)
{
	struct mostrace_call *call = mostrace_call_under_way(mostrace_thread());

	if (call && inode)
		mostrace_call_tell_inode(call, inode);
}

/*
 * Records the file that a rename moves. It is marked dirty before a file that it replaces; folders
 * are marked too.
 */
void mostrace_call_renames(struct inode *inode)
{
	struct mostrace_call *call = mostrace_call_under_way(mostrace_thread());

	if (call && call->kind == MOSTRACE_CALL_RENAME && !call->ino && !S_ISDIR(inode->i_mode))
		mostrace_call_tell_inode(call, inode);
}

/* Records the file of an msync, which has only an address as argument. */
void mostrace_call_syncs(struct inode *inode)
{
	struct mostrace_thread *thread = mostrace_thread();
	struct mostrace_call *call = mostrace_call_under_way(thread);

	if (!call || call->kind != MOSTRACE_CALL_MSYNC)
		return;
	mostrace_call_tell_inode(call, inode);
	thread->is_ours = mostrace_filesystem_wanted(call->s_dev);
}
