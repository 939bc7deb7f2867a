/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For whom a daemon of FUSE works. Each of its threads reads a request from /dev/fuse, does what it asks for, and writes the answer.
 * What a thread does in between, it does for the task that made the request, which the request's header names, if the thread answers
 * the request that it read last. A request that another thread answers says nothing.
 *
 * libfuse may move a request to a pipe (splice) and read its header from there. The header that is in memory when the answer is
 * written counts, if it has the answer's number: so neither read has to be followed to its end.
 *
 * A thread that reads a request before it has answered the last one serves several at a time, or hands them on: nothing is said of it.
 */
#ifndef MOSTRACE_FUSE_BPF_H
#define MOSTRACE_FUSE_BPF_H

#include "call.bpf.h"
#include "numbered.bpf.h"

/* <uapi/linux/fuse.h> */
struct fuse_request {
	__u32 len;
	__u32 opcode;
	__u64 unique;
	__u64 nodeid;
	__u32 uid;
	__u32 gid;
	__u32 pid;		/* 0 of what the kernel asks for by itself, such as write-back */
	__u32 extlen;
	__u32 flags;		/* of an open: the first field of its arguments */
};

struct fuse_answer {
	__u32 len;
	__s32 error;
	__u64 unique;
};

#define FUSE_HEADER 40
#define FUSE_OPEN 14

/* The requests that need no answer, as a set of numbers. */
#define FUSE_UNANSWERED                                                                                                \
	(1ULL << 2 /* FORGET */ | 1ULL << 36 /* INTERRUPT */ | 1ULL << 41 /* NOTIFY_REPLY */ |                        \
	 1ULL << 42 /* BATCH_FORGET */)

/* The requests that may change the files below, as a set of numbers; FUSE_OPEN is among them if it truncates. */
#define FUSE_CHANGES                                                                                                   \
	(1ULL << 4 /* SETATTR */ | 1ULL << 6 /* SYMLINK */ | 1ULL << 8 /* MKNOD */ | 1ULL << 9 /* MKDIR */ |          \
	 1ULL << 10 /* UNLINK */ | 1ULL << 11 /* RMDIR */ | 1ULL << 12 /* RENAME */ | 1ULL << 13 /* LINK */ |         \
	 1ULL << FUSE_OPEN | 1ULL << 16 /* WRITE */ | 1ULL << 20 /* FSYNC */ | 1ULL << 21 /* SETXATTR */ |            \
	 1ULL << 24 /* REMOVEXATTR */ | 1ULL << 25 /* FLUSH */ | 1ULL << 30 /* FSYNCDIR */ | 1ULL << 35 /* CREATE */ | \
	 1ULL << 39 /* IOCTL */ | 1ULL << 43 /* FALLOCATE */ | 1ULL << 45 /* RENAME2 */ |                              \
	 1ULL << 47 /* COPY_FILE_RANGE */ | 1ULL << 50 /* SYNCFS */ | 1ULL << 51 /* TMPFILE */)

/* 10:229, as the kernel holds it */
#define FUSE_DEVICE (10 << 20 | 229)
#define O_TRUNC 00001000

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pid___level {
	unsigned int level;
};

struct user_namespace___level {
	int level;
};

struct cred___space {
	struct user_namespace___level *user_ns;
};

struct task_struct___spaces {
	struct pid___level *thread_pid;
	struct cred___space *cred;
};

#pragma clang attribute pop

/* The number of read(2), by which the daemon gets its requests. */
const volatile __u32 read_number;

/* What a thread of a daemon reads its request into, and since when. */
struct served_thread {
	__u64 start_ns;
	__u64 answered;			/* the number of the request that it answered last */
	struct fuse_request *request;	/* in the daemon's memory, NULL: none, or */
	bool is_mixed;			/* it read a request before it answered another one */
	bool is_told;			/* user space saw it wait; whether it answers that request is seen only from then on */
	bool is_doubtful;		/* it may still serve the request of before, which it was told of */
};

/* in a pipe */
#define IN_A_PIPE ((struct fuse_request *)1)

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 10);
	__type(key, __u32);
	__type(value, struct served_thread);
} served_threads SEC(".maps");

/* The header's numbers are those of the first namespaces only if the daemon lives there. */
static __always_inline bool is_in_a_container(struct task_struct *task)
{
	struct task_struct___spaces *spaces = (void *)task;

	return BPF_CORE_READ(spaces, thread_pid, level) || BPF_CORE_READ(spaces, cred, user_ns, level);
}

/*
 * Returns true if a request is in memory that the thread did not answer, or in a pipe from which it was not read. The memory of a
 * read that failed still has the request of before, which was answered.
 */
static __always_inline bool is_unanswered(const struct served_thread *thread)
{
	struct fuse_request request = {};

	if (!thread->request || thread->request == IN_A_PIPE)
		return thread->request;
	if (bpf_probe_read_user(&request, FUSE_HEADER, thread->request) || request.unique == thread->answered)
		return false;
	return request.unique && (request.opcode > 63 || !(FUSE_UNANSWERED >> request.opcode & 1));
}

/* The thread waits for a request, which the kernel writes to `request`; NULL if it is not known where. */
static __always_inline int await_request(struct task_struct *task, struct fuse_request *request)
{
	struct served_thread thread = { .start_ns = bpf_ktime_get_ns(), .request = request };
	__u32 id = bpf_get_current_pid_tgid();
	struct served_thread *before = bpf_map_lookup_elem(&served_threads, &id);

	if (before) {
		thread.answered = before->answered;
		thread.is_doubtful = is_unanswered(before);
		thread.is_mixed = before->is_mixed || (thread.is_doubtful && !before->is_told);
	}
	if (!request || is_in_a_container(task))
		bpf_map_delete_elem(&served_threads, &id);
	else if (before)
		*before = thread;
	else if (bpf_map_update_elem(&served_threads, &id, &thread, BPF_ANY))
		lose_cause(LOSS_CAUSES_TASKS);
	return 0;
}

/* The thread begins a read from something else: its first one may be from the pipe with its request. */
static __always_inline int read_pipe(void *buffer)
{
	__u32 id = bpf_get_current_pid_tgid();
	struct served_thread *thread = bpf_map_lookup_elem(&served_threads, &id);

	if (thread && thread->request == IN_A_PIPE)
		thread->request = buffer;
	return 0;
}

/* Returns the address of the first bytes that a write passes. */
static __always_inline void *first_buffer(struct pt_regs *regs, __u16 how)
{
	void *address = (void *)call_argument(regs, 1), *first = 0;

	if (!(how & CALL_VECTOR))
		return address;
	/* struct iovec begins with its address. */
	bpf_probe_read_user(&first, sizeof(first), address);
	return first;
}

/*
 * Tells the process of the thread that made a request, and its name. As a rule it waits for the answer; if it has ended, another user's
 * thread may have its number.
 */
static __always_inline void tell_maker(struct mostrace_served *entry)
{
	struct task_struct *maker = numbered_task(entry->for_pid);

	if (!maker || BPF_CORE_READ(maker, cred, fsuid.val) != entry->for_uid)
		return;
	entry->for_tgid = BPF_CORE_READ(maker, tgid);
	BPF_CORE_READ_INTO(&entry->for_comm, maker, comm);
}

static __always_inline bool changes_files(const struct fuse_request *request)
{
	__u32 opcode = request->opcode;

	if (request->len < FUSE_HEADER || opcode > 63 || !(FUSE_CHANGES >> opcode & 1))
		return false;
	return opcode != FUSE_OPEN || request->flags & O_TRUNC;
}

/* The thread answers a request. If it is the one that it has read, the thread served it until now. */
static __always_inline int answer_request(struct pt_regs *regs, __u16 how)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 pid = id;
	struct served_thread *thread = bpf_map_lookup_elem(&served_threads, &pid);
	struct fuse_request request = {};
	struct fuse_answer answer = {};
	struct mostrace_served entry = {};

	if (!thread || !thread->request || thread->request == IN_A_PIPE)
		return 0;
	if (bpf_probe_read_user(&request, sizeof(request), thread->request) ||
	    bpf_probe_read_user(&answer, sizeof(answer), first_buffer(regs, how)))
		return 0;
	/* A message to the kernel is no answer. */
	if (!answer.unique)
		return 0;
	entry.start_ns = thread->start_ns;
	thread->answered = answer.unique;
	/* Another request's answer leaves its own unanswered. */
	if (answer.unique != request.unique)
		return 0;
	thread->request = 0;
	if (thread->is_mixed || thread->is_doubtful || !request.pid || !changes_files(&request))
		return 0;
	entry.unique = request.unique;
	entry.pid = pid;
	entry.tgid = id >> 32;
	entry.for_pid = request.pid;
	entry.for_tgid = ~0U;
	entry.for_uid = request.uid;
	entry.opcode = request.opcode;
	tell_maker(&entry);
	entry.head = cause_head(MOSTRACE_SERVED, sizeof(entry), bpf_ktime_get_ns());
	put_cause(&entry, sizeof(entry));
	return 0;
}

/* A task reads from /dev/fuse, or writes to it, as its call says. */
static __always_inline int use_device(struct task_struct *task, struct pt_regs *regs)
{
	long number = call_number(regs);
	__u16 how = kind_of_number(number);

	if (number == read_number)
		return await_request(task, (void *)call_argument(regs, 1));
	switch (how & CALL_KIND) {
	case MOSTRACE_CALL_READ:
		return await_request(task, 0);
	case MOSTRACE_CALL_SPLICE:
		return await_request(task, IN_A_PIPE);
	case MOSTRACE_CALL_WRITE:
		return answer_request(regs, how);
	}
	return 0;
}

static __always_inline bool is_device(__u32 fd)
{
	struct file *file = open_file(fd);

	return file && BPF_CORE_READ(file, f_inode, i_rdev) == FUSE_DEVICE &&
	       (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) == S_IFCHR;
}

/* Any task begins any call. */
static __always_inline int look_for_device(struct pt_regs *regs, long number)
{
	struct task_struct *task = this_task();
	__u16 kind = kind_of_number(number) & CALL_KIND;

	if (kind != MOSTRACE_CALL_READ && kind != MOSTRACE_CALL_WRITE && kind != MOSTRACE_CALL_SPLICE)
		return 0;
	if (is_compat(task))
		return 0;
	if (is_device(call_argument(regs, 0)))
		return use_device(task, regs);
	return number == read_number ? read_pipe((void *)call_argument(regs, 1)) : 0;
}

/* A function of the device begins; a task reads and writes only by its own calls. */
static __always_inline int begin_device(void)
{
	struct task_struct *task = this_task();

	if (OF_TASK(task, flags) & PF_NO_CALL || is_compat(task))
		return 0;
	return use_device(task, (void *)bpf_task_pt_regs((void *)task));
}

/* A function that reads from a pipe begins. */
static __always_inline int begin_pipe(void)
{
	struct task_struct *task = this_task();
	struct pt_regs *regs = (void *)bpf_task_pt_regs((void *)task);

	if (OF_TASK(task, flags) & PF_NO_CALL || call_number(regs) != read_number)
		return 0;
	return read_pipe((void *)call_argument(regs, 1));
}

#endif
