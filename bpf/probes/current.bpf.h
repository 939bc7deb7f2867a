/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The call that the current task is in: its own system call or, for a worker of io_uring, the request that it executes
 * for the task that submitted it.
 */
#ifndef MOSTRACE_CURRENT_BPF_H
#define MOSTRACE_CURRENT_BPF_H

#include "called.bpf.h"
#include "place.bpf.h"
#include "ringrequest.bpf.h"
#include "task.bpf.h"

struct call {
	struct mostrace_call entry;
	bool is_ours;		/* the call involves the traced filesystem; the recorder reads it in calls that have not returned */
	bool asks;		/* the filesystem said that the call asks for durability */
	bool is_filesystems;	/* no call, but what the filesystem said about a sync that is part of none */
	__u32 rwf;		/* flags RWF_… of a pwritev2 */
	struct file *file;	/* of its descriptor */
	struct inode *below;	/* the file that a filesystem told, if it is not the descriptor's */
	void *buffer;		/* written buffer in the program's memory; NULL: several */
	struct kiocb *iocb;	/* of a write that is recorded by functions: its position, until the write ends */
	__u64 written_to;	/* the end of what the filesystem said that the call wrote, or 0 */
	struct called_file replaced;	/* the file that the call, a rename, replaced */
};

_Static_assert(__builtin_offsetof(struct call, is_ours) == sizeof(struct mostrace_call), "call");

/* The call that each thread is in; its kind is OTHER if the thread is in none that is recorded. */
PER_THREAD(call)

/* The call has ended, or is given up. */
static __always_inline void close_call(struct call *call)
{
	call->entry.kind = MOSTRACE_CALL_OTHER;
	leave_call();
}

/* Requests in flight. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, __u64);
	__type(value, struct call);
} uring_calls SEC(".maps");

/* Returns the request that a worker executes, or NULL; the thread that polls for submissions is no worker. */
static __always_inline struct call *worker_call(struct task_struct *task)
{
	struct io_worker *worker;
	struct io_wq_work *work;
	__u64 request;

	/* Before 5.17 requests are not followed. */
	if (!bpf_core_field_exists(struct task_struct___worker, worker_private))
		return 0;
	worker = BPF_CORE_READ((struct task_struct___worker *)task, worker_private);
	work = worker ? BPF_CORE_READ(worker, cur_work) : 0;
	if (!work)
		return 0;
	request = (__u64)work - bpf_core_field_offset(struct io_kiocb, work);
	return bpf_map_lookup_elem(&uring_calls, &request);
}

static __always_inline struct call *current_call(void)
{
	struct task_struct *task = this_task();
	struct call *call;

	if (OF_TASK(task, flags) & PF_IO_WORKER)
		return worker_call(task);
	call = find_call();
	return call && call->entry.kind != MOSTRACE_CALL_OTHER ? call : 0;
}

static __always_inline void tell_inode(struct mostrace_call *call, struct inode *inode)
{
	call->ino = number_of(inode);
	call->generation = LOAD(inode, i_generation);
	call->s_dev = LOAD(inode, i_sb, s_dev);
}

/*
 * Takes a filesystem's word for the file that a call is about: that of a path, that of an address, or the one to which an overlay
 * passed the call on. If the descriptor is the file itself, this says nothing new.
 */
static __always_inline void tell_below(struct call *call, struct inode *inode)
{
	if (call->file && call->entry.ino)
		return;
	call->below = inode;
	call->is_ours = true;
	tell_inode(&call->entry, inode);
}

/* Stores the current task's name or, of a worker of io_uring that has no request, its program's. */
static __always_inline void causer_comm(char *comm)
{
#ifdef MOSTRACE_LOOPLESS
	struct task_struct *task = this_task();

	if (OF_TASK(task, flags) & PF_IO_WORKER) {
		__builtin_memset(comm, 0, MOSTRACE_COMM_LEN);
		BPF_CORE_READ_STR_INTO((char(*)[MOSTRACE_COMM_LEN])comm, task, group_leader, comm);
		return;
	}
#endif
	current_comm(comm);
}

static __always_inline void tell_task(struct mostrace_call *call)
{
	__u64 id = bpf_get_current_pid_tgid();

	call->pid = id;
	call->tgid = id >> 32;
	call->uid = current_uid();
	causer_comm(call->comm);
	tell_cgroup(call->start_ns);
}

/* Tells the present as the time of the entry; the flags stay. */
static __always_inline void end_entry(struct call *call)
{
	__u8 flags = call->entry.head.flags;

	call->entry.head = cause_head(MOSTRACE_CALL, sizeof(call->entry), bpf_ktime_get_ns());
	call->entry.head.flags = flags;
}

/* Puts the entry of a call that has returned, and of the file that it replaced if it is a rename. */
static __always_inline void put_call(struct call *call)
{
	struct mostrace_call *entry = &call->entry;

	put_cause(entry, sizeof(*entry));
	if (!call->replaced.ino || entry->result)
		return;
	entry->kind = MOSTRACE_CALL_UNLINK;
	entry->head.flags = MOSTRACE_CALL_REPLACED;
	entry->ino = call->replaced.ino;
	entry->generation = call->replaced.generation;
	entry->s_dev = call->replaced.s_dev;
	put_cause(entry, sizeof(*entry));
}

#endif
