/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The handles of a journal. ext4 reports the inode for which it begins a handle and the function that does; jbd2
 * reports the transaction that the handle joined and how many buffers it modified.
 */
#ifndef MOSTRACE_HANDLE_BPF_H
#define MOSTRACE_HANDLE_BPF_H

#include "call.bpf.h"
#include "first.bpf.h"
#include "once.bpf.h"

enum handle_state {
	HANDLE_NONE,
	HANDLE_PREPARED,	/* ext4 has announced the handle */
	HANDLE_OPEN,
};

struct handle {
	struct mostrace_handle entry;
	/* The buffer that it modified last, and what for: it often is the same again. */
	__u64 last_buffer;
	__u64 last_purpose;
	__u32 handles;		/* t_handle_count when the handle joined */
	bool told;		/* an entry of a block refers to it */
	bool unborn;		/* its filesystem was being mounted when ext4 announced it */
	bool left;		/* it has left its transaction, and has not joined the next one yet */
	__u32 state;
};

/* User space sets it when all programs are attached, so that no part of what a later handle does is missing. */
bool is_attached;

/* The handle of each thread. */
PER_THREAD(handle)

/* One counter per CPU, so that no two CPUs use the same number. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} handle_numbers SEC(".maps");

#ifdef MOSTRACE_LOOPLESS
/* Before 5.12 no instruction does both at once, and no task is preempted within a program. */
static __always_inline __u64 next_of(__u64 *number)
{
	return ++*number;
}
#else
static __always_inline __u64 next_of(__u64 *number)
{
	return __sync_fetch_and_add(number, 1) + 1;
}
#endif

/* Returns a new id with the CPU in the upper 16 bits; never 0. */
static __always_inline __u64 new_handle_id(void)
{
	__u32 zero = 0;
	__u64 *number = bpf_map_lookup_elem(&handle_numbers, &zero);

	return number ? (__u64)bpf_get_smp_processor_id() << 48 | next_of(number) : 0;
}

static __always_inline struct handle *current_handle(void)
{
	struct handle *h = find_handle();

	return h && h->state != HANDLE_NONE ? h : 0;
}

static __always_inline bool has_journal_info(void)
{
	return OF_TASK(this_task(), journal_info);
}

static __always_inline void tell_handle_inode(struct mostrace_handle *entry, struct inode *inode)
{
	if (!inode || entry->ino)
		return;
	entry->ino = inode_ino(inode);
	entry->generation = LOAD(inode, i_generation);
}

/* ext4 is about to begin a handle; within another one it gets that one again. */
static __always_inline int prepare_handle(struct super_block *sb, struct inode *inode, __u64 function)
{
	struct handle *h;
	struct call *call;
	__u32 s_dev;

	if (has_journal_info())
		return 0;
	s_dev = LOAD(sb, s_dev);
	if (!is_traced_filesystem(s_dev))
		return 0;
	h = room_for_handle();
	if (!h)
		return 0;
	*h = (struct handle){
		.entry.function = function,
		.entry.s_dev = s_dev,
		.unborn = !(LOAD(sb, s_flags) & SB_BORN),
		.state = HANDLE_PREPARED,
	};
	call = current_call();
	/* The inode of an unlinked name is not the folder's, for which the handle begins. */
	if (call && call->entry.kind == MOSTRACE_CALL_UNLINK && call->entry.ino) {
		h->entry.ino = call->entry.ino;
		h->entry.generation = call->entry.generation;
	} else {
		tell_handle_inode(&h->entry, inode);
	}
	return 0;
}

/* Records that the handle has joined a transaction. */
static __always_inline void join(struct handle *h, __u32 tid)
{
	struct transaction_s *transaction = current_transaction();

	h->entry.tid = tid;
	h->entry.id = new_handle_id();
	h->last_buffer = 0;
	h->handles = JBD2(transaction, t_handle_count.counter, TRANSACTION_HANDLES);
	/* Of two handles that begin at once, each may see both; then neither is said to be the first. */
	if (is_attached && h->handles == 1)
		h->entry.head.flags |= MOSTRACE_HANDLE_OPENS;
	if (JBD2(transaction, t_updates.counter, TRANSACTION_UPDATES) > 1)
		h->entry.head.flags |= MOSTRACE_HANDLE_OVERLAP;
}

static __always_inline __u16 kind_of_handle(const struct handle *h)
{
	__u16 kind = running_kind();

	return kind == MOSTRACE_CALL_MOUNT && h->unborn ? MOSTRACE_CALL_FILL_SUPER : kind;
}

static __always_inline int begin_handle(__u32 s_dev, __u32 tid, __u32 type)
{
	struct handle *h;

	if (!is_traced_filesystem(s_dev))
		return 0;
	h = room_for_handle();
	if (!h)
		return 0;
	/*
	 * A handle reserved for the end of IO is not announced by ext4. An announced handle of another filesystem
	 * may never have begun.
	 */
	if (h->state != HANDLE_PREPARED || h->entry.s_dev != s_dev)
		*h = (struct handle){ .entry.function = MOSTRACE_NONE, .entry.s_dev = s_dev };
	h->state = HANDLE_OPEN;
	h->entry.start_ns = bpf_ktime_get_ns();
	h->entry.head.sector = current_stack(true);
	h->entry.type = type;
	h->entry.call = kind_of_handle(h);
	join(h, tid);
	return 0;
}

/* Returns a number that identifies the purpose of a handle: the function that began it, the inode and, if it is recorded, the stack. */
static __always_inline __u64 purpose_of(const struct mostrace_handle *entry)
{
	__u64 number = entry->function * 0x9e3779b97f4a7c15ULL;

	if (tells_stacks)
		number ^= entry->head.sector;
	return (number ^ entry->ino ^ (__u64)entry->generation << 32) * 0x9e3779b97f4a7c15ULL ^ entry->type;
}

/* Returns the same while the handle is open. As long as its inode is not known, each handle has a purpose of its own. */
static __always_inline __u64 purpose_so_far(const struct mostrace_handle *entry)
{
	return entry->ino ? purpose_of(entry) : entry->id;
}

/* Returns a number for what the thread does for this purpose in a transaction of the handle's filesystem. */
static __always_inline __u64 work_of(const struct mostrace_handle *entry, __u64 purpose)
{
	return mixed(mixed(purpose, entry->s_dev), (__u64)entry->tid << 32 | current_pid());
}

/*
 * A buffer is modified. jbd2 counts it for the handle if no handle of the transaction modified it before; later
 * modifications are reported too, once for each purpose.
 */
static __always_inline int modify_buffer(struct buffer_head *bh, struct journal_head *jh, bool is_first)
{
	struct mostrace_dirtied entry = {};
	struct claim claim;
	struct handle *h;
	__u64 purpose;

	h = current_handle();
	if (!h || h->state != HANDLE_OPEN)
		return 0;
	purpose = purpose_so_far(&h->entry);
	/* A buffer that was freed and has become another block's meanwhile is modified for the first time. */
	if (!is_first && h->last_buffer == (__u64)bh && h->last_purpose == purpose)
		return 0;
	h->last_buffer = (__u64)bh;
	h->last_purpose = purpose;
	entry.handle = h->entry.id;
	entry.tid = h->entry.tid;
	claim = claim_of(&entry, bh);
	if (was_told(mixed(work_of(&h->entry, purpose), claim.block)) && !is_first)
		return 0;
	entry.head = cause_head(MOSTRACE_DIRTIED, sizeof(entry), bpf_ktime_get_ns());
	entry.head.flags = JBD2(jh, b_transaction, HEAD_TRANSACTION) == current_transaction() ?
		MOSTRACE_DIRTIED_NEW : MOSTRACE_DIRTIED_KEPT;
	entry.head.flags |= MOSTRACE_DIRTIED_EACH;
	h->told = true;
	if (is_first)
		h->entry.named++;
	put_dirtied(&entry, bh, &claim);
	return 0;
}

/* A buffer is about to be modified, as a program at the function sees it. */
static __always_inline int modify(struct buffer_head *bh)
{
	struct journal_head *jh = LOAD(bh, b_private);

	return jh ? modify_buffer(bh, jh, !JBD2(jh, b_modified, HEAD_MODIFIED)) : 0;
}

/* Makes the head of an entry that is to be put; the stack stays. */
static __always_inline void end_handle_entry(struct mostrace_handle *entry, __u8 flags)
{
	__u64 stack = entry->head.sector;

	entry->head = cause_head(MOSTRACE_HANDLE, sizeof(*entry), bpf_ktime_get_ns());
	entry->head.sector = stack;
	entry->head.flags = flags;
}

static __always_inline void name_task(struct mostrace_handle *entry)
{
	__u64 id = bpf_get_current_pid_tgid();

	entry->pid = id;
	entry->tgid = id >> 32;
	entry->uid = current_uid();
	causer_comm(entry->comm);
	tell_cgroup(entry->head.time_ns);
}

/*
 * Records the part of a handle in the transaction that it leaves. The number of blocks that it dirtied there is not known and not
 * part of any sum; the entry has a flag for this.
 */
static __always_inline void leave(struct handle *h)
{
	__u8 flags;

	if (walks_lists)
		tear(h->entry.s_dev, h->entry.tid);
	flags = h->entry.head.flags | MOSTRACE_HANDLE_RESTARTED | MOSTRACE_HANDLE_EACH_CAUSE;
	end_handle_entry(&h->entry, flags);
	name_task(&h->entry);
	put_cause(&h->entry, sizeof(h->entry));
	h->entry.head.flags = 0;
	h->entry.named = 0;
	h->told = false;
	h->left = true;
}

/*
 * A handle is about to be restarted: it leaves its transaction, and may wait until that is committed before it joins the next one.
 * Its entry must not be later than the copies.
 */
static __always_inline int begin_restart(struct jbd2_journal_handle *handle)
{
	struct task_struct *task = this_task();
	struct handle *h = current_handle();

	if (h && h->state == HANDLE_OPEN && !h->left && handle == OF_TASK(task, journal_info))
		leave(h);
	return 0;
}

/* The handle has joined the next transaction. */
static __always_inline int restart_handle(__u32 s_dev, __u32 tid)
{
	struct handle *h;

	if (!is_traced_filesystem(s_dev))
		return 0;
	h = current_handle();
	if (!h)
		return 0;
	if (!h->left)
		leave(h);
	h->left = false;
	join(h, tid);
	return 0;
}

/*
 * Records that a call which is not recorded itself asks for durability, such as an open that makes a file in a folder that is
 * written synchronously (dirsync, chattr +D).
 */
static __always_inline void put_asking(const struct mostrace_handle *of)
{
	struct mostrace_call entry = {
		.head = cause_head(MOSTRACE_CALL, sizeof(entry), bpf_ktime_get_ns()),
		.start_ns = of->start_ns,
		.ino = of->ino,
		.generation = of->generation,
		.s_dev = of->s_dev,
		.offset = MOSTRACE_NONE,
		.kind = of->call,
	};

	entry.head.flags = MOSTRACE_CALL_PART | MOSTRACE_CALL_THROUGH;
	tell_task(&entry);
	put_cause(&entry, sizeof(entry));
}

/* A call with a path involves the filesystem if it joined the journal. It asks for durability if its handle does (`sync`). */
static __always_inline void tell_call(const struct mostrace_handle *entry, bool sync)
{
	struct task_struct *task = this_task();
	struct call *call = current_call();
	bool is_told;

	if (!call) {
		if (sync && !(OF_TASK(task, flags) & PF_KTHREAD))
			put_asking(entry);
		return;
	}
	/* A call of a stacked filesystem's file may change other files too: the source of a copy has its time of access. */
	if (call->file && !call->entry.ino && call->entry.kind != MOSTRACE_CALL_WRITE)
		return;
	is_told = call->is_ours;
	call->is_ours = true;
	call->asks |= sync;
	/* For a rename this is the folder. */
	if (!call->entry.ino && call->entry.kind != MOSTRACE_CALL_RENAME) {
		call->entry.ino = entry->ino;
		call->entry.generation = entry->generation;
	}
	call->entry.s_dev = entry->s_dev;
	/* A request to io_uring whose end nothing reports. */
	if (call->entry.head.flags & MOSTRACE_CALL_OPEN_END && !is_told) {
		end_entry(call);
		put_call(call);
	}
}

struct handle_end {
	__u32 s_dev;
	__u32 tid;
	__u32 type;
	__u32 sync;
	__u32 requested;
	__u32 dirtied;
};

/*
 * Returns true if the handle is worth an entry. Most handles modify what another one of the transaction modified
 * already; of those, one per thread and purpose is recorded to show that it took part.
 */
static __always_inline bool says_something(const struct handle *h, const struct handle_end *end)
{
	if ((__s32)end->dirtied > 0 || end->sync || h->told || h->entry.head.flags & MOSTRACE_HANDLE_FORGOT)
		return true;
	return !was_told(work_of(&h->entry, purpose_of(&h->entry)));
}

/*
 * Attributes the blocks that were not reported when they were modified; they may belong to other handles that were
 * open too. Returns the handle's flags.
 */
static __always_inline __u8 name_rest(struct handle *h, __u32 s_dev, struct transaction_s *transaction)
{
	struct mostrace_handle *entry = &h->entry;
	__u8 flags = entry->head.flags;

	if (entry->named >= entry->dirtied)
		return flags & ~MOSTRACE_HANDLE_OVERLAP;
	if (JBD2(transaction, t_handle_count.counter, TRANSACTION_HANDLES) != h->handles)
		flags |= MOSTRACE_HANDLE_OVERLAP;
	if (walks_lists)
		entry->named += name_dirtied(entry->id, s_dev, entry->tid, entry->dirtied - entry->named);
	return flags;
}

static __always_inline void put_handle(struct handle *h, const struct handle_end *end,
				       struct transaction_s *transaction)
{
	struct mostrace_handle *entry = &h->entry;
	__u8 flags;

	entry->dirtied = (__s32)end->dirtied > 0 ? end->dirtied : 0;
	flags = name_rest(h, end->s_dev, transaction);
	if (OF_TASK(this_task(), flags) & PF_KTHREAD)
		flags |= MOSTRACE_HANDLE_KERNEL;
	if (end->sync)
		flags |= MOSTRACE_HANDLE_SYNC;
	flags |= MOSTRACE_HANDLE_EACH_CAUSE;
	end_handle_entry(entry, flags);
	entry->requested = end->requested;
	name_task(entry);
	put_cause(entry, sizeof(*entry));
}

/* Makes room for a handle that was begun before the probes were attached. */
static __always_inline struct handle *unseen_handle(const struct handle_end *end)
{
	struct handle *h = room_for_handle();

	if (!h)
		return 0;
	*h = (struct handle){
		.entry.function = MOSTRACE_NONE,
		.entry.head.sector = MOSTRACE_NONE,
		.entry.head.flags = MOSTRACE_HANDLE_UNSEEN,
		.entry.s_dev = end->s_dev,
		.entry.tid = end->tid,
		.entry.type = end->type,
	};
	h->entry.id = new_handle_id();
	return h;
}

/* The last user of the handle ends it; it is still the task's current one. */
static __always_inline int end_handle(const struct handle_end *end)
{
	struct transaction_s *transaction = current_transaction();
	struct handle *h;

	if (!is_traced_filesystem(end->s_dev) || !transaction)
		return 0;
	h = current_handle();
	if (h && h->state == HANDLE_OPEN && h->entry.tid == end->tid)
		tell_call(&h->entry, end->sync);
	else
		h = unseen_handle(end);
	if (!h)
		return 0;
	if (says_something(h, end))
		put_handle(h, end, transaction);
	h->state = HANDLE_NONE;
	leave_handle();
	return 0;
}

#endif
