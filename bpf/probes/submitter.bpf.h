/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The submitter of a bio: the task in which block_bio_queue runs, unless another task passes on the bio for it (dm,
 * md), or throttled it before (blk-throttle).
 */
#ifndef MOSTRACE_SUBMITTER_BPF_H
#define MOSTRACE_SUBMITTER_BPF_H

#include "bio.bpf.h"
#include "iomap.bpf.h"
#include "loss.bpf.h"
#include "mounting.bpf.h"
#include "mostrace.h"

struct submitter {
	__u64 time_ns;		/* time of block_bio_queue */
	__u64 sector;		/* bi_sector then */
	__u64 direct_pos;	/* file position of `sector` for direct IO, or MOSTRACE_NONE */
	__u32 pid;
	__u32 tgid;
	__u32 uid;
	__u32 flags;		/* enum mostrace_flags */
	char comm[MOSTRACE_COMM_LEN];
};

/* The submitters of bios of the disks above, from their own block_bio_queue until they complete. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 16);
	__type(key, __u64);
	__type(value, struct submitter);
} submitters SEC(".maps");

static __always_inline void remember(struct bio *bio, const struct submitter *submitter)
{
	__u64 key = (__u64)bio;

	if (bpf_map_update_elem(&submitters, &key, submitter, BPF_ANY))
		lose(LOSS_SUBMITTERS);
}

static __always_inline void forget(struct bio *bio)
{
	__u64 key = (__u64)bio;

	bpf_map_delete_elem(&submitters, &key);
}

static __always_inline struct submitter *recall(struct bio *bio)
{
	__u64 key = (__u64)bio;

	return bpf_map_lookup_elem(&submitters, &key);
}

/* "kworker/", with which the comm of every workqueue worker begins. */
#define KWORKER 0x2f72656b726f776bULL

static __always_inline bool is_worker(const struct submitter *s)
{
	return *(const __u64 *)s->comm == KWORKER;
}

/* Returns true if blk-throttle's worker runs, which queues the bios that were throttled. */
static __noinline bool in_throttle(void)
{
	return symbols.blk_throtl_dispatch_work_fn &&
	       current_work() == symbols.blk_throtl_dispatch_work_fn;
}

static __always_inline __u32 is_kernel_thread(struct task_struct *task)
{
	return LOAD(task, flags) & PF_KTHREAD ? MOSTRACE_KERNEL_THREAD : 0;
}

static __always_inline void set_unknown(struct submitter *s)
{
	s->pid = s->tgid = s->uid = 0;
	s->flags = MOSTRACE_NO_SUBMITTER;
	__builtin_memset(s->comm, 0, sizeof(s->comm));
}

/* The task that waits for its own direct IO is the one that submitted it. */
static __noinline void submitter_of_throttled(struct submitter *s, const struct bio_view *v)
{
	struct task_struct *waiter = direct_waiter(v);

	if (!waiter) {
		set_unknown(s);
		return;
	}
	s->flags = is_kernel_thread(waiter) | MOSTRACE_CHAINED;
	s->pid = BPF_CORE_READ(waiter, pid);
	s->tgid = BPF_CORE_READ(waiter, tgid);
	s->uid = BPF_CORE_READ(waiter, cred, uid.val);
	bpf_probe_read_kernel(s->comm, sizeof(s->comm),
			      (char *)waiter + bpf_core_field_offset(struct task_struct, comm));
}

/* Reads the current task's attributes; with types it is asked for once. */
static __always_inline void see_task(struct submitter *s)
{
	struct task_struct *task;

	if (!HAS_TYPES) {
		s->pid = current_pid();
		s->tgid = current_tgid();
		s->uid = current_uid();
		s->flags = is_kernel_thread((struct task_struct *)bpf_get_current_task());
		current_comm(s->comm);
		return;
	}
	task = bpf_get_current_task_btf();
	s->pid = task->pid;
	s->tgid = task->tgid;
	s->uid = task->cred->uid.val;
	s->flags = task->flags & PF_KTHREAD ? MOSTRACE_KERNEL_THREAD : 0;
	copy_comm(s->comm, task);
}

/* Finds the submitter of a bio that is being queued, and its direct IO. Returns the thread that queues it. */
static __always_inline __u32 see_submitter(struct window *w, struct submitter *s, struct direct *direct,
					   const struct bio_view *v, const struct bio_device *d)
{
	__u32 thread;

	s->time_ns = bpf_ktime_get_ns();
	s->sector = v->sector;
	see_task(s);
	thread = s->pid;
	if (is_worker(s) && in_throttle()) {
		/* iomap has moved on meanwhile; only what it reported before still holds. */
		direct->file = 0;
		s->direct_pos = tells_direct ? told_pos(w, direct, v->bio, v->sector - d->start) : MOSTRACE_NONE;
		submitter_of_throttled(s, v);
	} else {
		s->direct_pos = direct_pos(w, direct, v, v->sector - d->start);
	}
	return thread;
}

#endif
