// SPDX-License-Identifier: GPL-2.0-only
/*
 * The probes of causes: those of system calls, and those of ext4 and jbd2, whose tracepoints exist
 * once these modules are loaded. While the tracepoints are probed, their modules cannot be
 * unloaded.
 */
#include <linux/build_bug.h>
#include <linux/jbd2.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

/* These are from fs/ext4/ext4.h; the tracepoints' header uses them without defining them. */
typedef unsigned int ext4_group_t;
typedef int ext4_grpblk_t;
typedef __u32 ext4_lblk_t;
typedef unsigned long long ext4_fsblk_t;

#include <trace/events/ext4.h>
#include <trace/events/jbd2.h>
#include <trace/events/sched.h>
#include <trace/events/syscalls.h>
#include "call.h"
#include "causes.h"
#include "compat.h"
#include "filesystems.h"
#include "handle.h"
#include "thread.h"

static void on_sys_enter(void *data, struct pt_regs *regs, long number)
{
	mostrace_call_begun(regs, number);
}

static void on_sys_exit(void *data, struct pt_regs *regs, long result)
{
	mostrace_call_ended(regs, result);
}

static void on_free(void *data, struct task_struct *task)
{
	mostrace_thread_ended(task);
}

/* 6.2 (d99a55a94a0d): the tracepoint was split in two, and the type was added. */
#ifdef MOSTRACE_JOURNAL_START_INODE
static void on_start_sb(void *data, struct super_block *sb, int blocks, int rsv_blocks,
			int revoke_creds, int type, unsigned long ip)
{
	mostrace_handle_prepared(sb->s_dev, NULL, ip);
}

static void on_start_inode(void *data, struct inode *inode, int blocks, int rsv_blocks,
			   int revoke_creds, int type, unsigned long ip)
{
	mostrace_handle_prepared(inode->i_sb->s_dev, inode, ip);
}
#else
static void __maybe_unused on_start(void *data, struct super_block *sb, int blocks, int rsv_blocks,
				    int revoke_creds, unsigned long ip)
{
	mostrace_handle_prepared(sb->s_dev, NULL, ip);
}

/* 5.5 (83448bdfb597): the credits for revoked blocks were added. */
static void __maybe_unused on_start_plain(void *data, struct super_block *sb, int blocks,
					  int rsv_blocks, unsigned long ip)
{
	mostrace_handle_prepared(sb->s_dev, NULL, ip);
}
#endif

static void on_mark_inode_dirty(void *data, struct inode *inode, unsigned long ip)
{
	mostrace_handle_marks(inode);
}

static void on_unlink(void *data, struct inode *folder, struct dentry *dentry)
{
	mostrace_call_unlinks(d_inode(dentry));
}

static void on_sync_file(void *data, struct file *file, int datasync)
{
	mostrace_call_syncs(file_inode(file));
}

/* 5.18 (d96acc5f6a1c): the transaction's number got a type of its own. */
static void __maybe_unused on_begin_long(void *data, dev_t dev, unsigned long tid,
					 unsigned int type, unsigned int line_no, int requested)
{
	mostrace_handle_begun(dev, tid, type);
}

static void __maybe_unused on_begin(void *data, dev_t dev, tid_t tid, unsigned int type,
				    unsigned int line_no, int requested)
{
	mostrace_handle_begun(dev, tid, type);
}

/* The series adds the handle's id. */
static void __maybe_unused on_begin_id(void *data, dev_t dev, tid_t tid, unsigned int type,
				       unsigned int line_no, int requested, unsigned int id)
{
	mostrace_handle_begun(dev, tid, type);
}

static void __maybe_unused on_restart_long(void *data, dev_t dev, unsigned long tid,
					   unsigned int type, unsigned int line_no, int requested)
{
	mostrace_handle_restarted(dev, tid);
}

static void __maybe_unused on_restart(void *data, dev_t dev, tid_t tid, unsigned int type,
				      unsigned int line_no, int requested)
{
	mostrace_handle_restarted(dev, tid);
}

static void __maybe_unused on_restart_id(void *data, dev_t dev, tid_t tid, unsigned int type,
					 unsigned int line_no, int requested, unsigned int id)
{
	mostrace_handle_restarted(dev, tid);
}

static void on_end(void *data, dev_t dev, tid_t tid, unsigned int type, unsigned int line_no,
		   int interval, int sync, int requested, int dirtied)
{
	const struct mostrace_handle_end end = {
		.s_dev = dev,
		.tid = tid,
		.type = type,
		.sync = sync,
		.requested = requested,
		.dirtied = dirtied,
	};

	mostrace_handle_ended(&end);
}

static void __maybe_unused on_end_long(void *data, dev_t dev, unsigned long tid, unsigned int type,
				       unsigned int line_no, int interval, int sync, int requested,
				       int dirtied)
{
	on_end(data, dev, tid, type, line_no, interval, sync, requested, dirtied);
}

static void __maybe_unused on_end_id(void *data, dev_t dev, tid_t tid, unsigned int type,
				     unsigned int line_no, int interval, int sync, int requested,
				     int dirtied, unsigned int id)
{
	on_end(data, dev, tid, type, line_no, interval, sync, requested, dirtied);
}

/*
 * For kernels that have this tracepoint. The credit is 1 if the handle is the first of its
 * transaction to modify the buffer.
 */
static void on_modify(void *data, handle_t *handle, struct buffer_head *bh, int credit)
{
	if (credit)
		mostrace_handle_modifies(handle, bh2jh(bh));
}

#define TAKES(tp, ...) __builtin_types_compatible_p(typeof(trace_##tp), void (__VA_ARGS__))

#define START_LONG	TAKES(jbd2_handle_start, dev_t, unsigned long, unsigned int, unsigned int, int)
#define STATS_LONG	TAKES(jbd2_handle_stats, dev_t, unsigned long, unsigned int, unsigned int, int,	\
			      int, int, int)

#define START_ID	TAKES(jbd2_handle_start, dev_t, tid_t, unsigned int, unsigned int, int,	\
			      unsigned int)
#define STATS_ID	TAKES(jbd2_handle_stats, dev_t, tid_t, unsigned int, unsigned int, int, int,	\
			      int, int, unsigned int)

/* Chooses the function for the type that the tracepoint has. */
#define OF_HANDLE(has_long, with_long, has_id, with_id, without)				\
	__builtin_choose_expr(has_long, with_long, __builtin_choose_expr(has_id, with_id, without))

static_assert(TAKES(sys_enter, struct pt_regs *, long));
static_assert(TAKES(sys_exit, struct pt_regs *, long));
static_assert(TAKES(sched_process_free, struct task_struct *));
static_assert(START_LONG || START_ID || TAKES(jbd2_handle_start, dev_t, tid_t, unsigned int, unsigned int, int));
static_assert(STATS_LONG || STATS_ID || TAKES(jbd2_handle_stats, dev_t, tid_t, unsigned int, unsigned int, int,
				  int, int, int));
static_assert(TAKES(ext4_mark_inode_dirty, struct inode *, unsigned long));
static_assert(TAKES(ext4_unlink_enter, struct inode *, struct dentry *));
static_assert(TAKES(ext4_sync_file_enter, struct file *, int));
#ifdef MOSTRACE_JOURNAL_START_INODE
static_assert(TAKES(ext4_journal_start_sb, struct super_block *, int, int, int, int, unsigned long));
static_assert(TAKES(ext4_journal_start_inode, struct inode *, int, int, int, int, unsigned long));
#else
#define START_PLAIN	TAKES(ext4_journal_start, struct super_block *, int, int, unsigned long)
static_assert(START_PLAIN || TAKES(ext4_journal_start, struct super_block *, int, int, int, unsigned long));
#endif

static struct probe {
	const char *name;
	void *function;
	struct tracepoint *tp;
	struct module *owner;	/* NULL: the kernel itself */
	bool registered;
} probes[] = {
	{ "sys_enter", on_sys_enter },
	{ "sys_exit", on_sys_exit },
	{ "sched_process_free", on_free },
#ifdef MOSTRACE_JOURNAL_START_INODE
	{ "ext4_journal_start_sb", on_start_sb },
	{ "ext4_journal_start_inode", on_start_inode },
#else
	{ "ext4_journal_start", __builtin_choose_expr(START_PLAIN, on_start_plain, on_start) },
#endif
	{ "ext4_mark_inode_dirty", on_mark_inode_dirty },
	{ "ext4_unlink_enter", on_unlink },
	{ "ext4_sync_file_enter", on_sync_file },
	{ "jbd2_handle_start",
	  OF_HANDLE(START_LONG, on_begin_long, START_ID, on_begin_id, on_begin) },
	{ "jbd2_handle_restart",
	  OF_HANDLE(START_LONG, on_restart_long, START_ID, on_restart_id, on_restart) },
	{ "jbd2_handle_stats",
	  OF_HANDLE(STATS_LONG, on_end_long, STATS_ID, on_end_id, on_end) },
	{ "jbd2_dirty_metadata", on_modify },
};

static bool modifies_told;

static void find_probe(struct tracepoint *tp, void *owner)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		if (strcmp(tp->name, probes[i].name) || probes[i].tp)
			continue;
		if (!try_module_get(owner))
			continue;
		probes[i].tp = tp;
		probes[i].owner = owner;
	}
}

#ifdef CONFIG_MODULES
/*
 * Called for each loaded module that has tracepoints, and for those loaded while the notifier is
 * registered.
 */
static int find_in_module(struct notifier_block *nb, unsigned long state, void *data)
{
	struct module *module = ((struct tp_module *)data)->mod;
	int i;

	if (state == MODULE_STATE_COMING)
		for (i = 0; i < module->num_tracepoints; i++)
			find_probe(tracepoint_ptr_deref(&module->tracepoints_ptrs[i]), module);
	return NOTIFY_OK;
}

static struct notifier_block finder = { .notifier_call = find_in_module };

static void find_in_modules(void)
{
	if (!register_tracepoint_module_notifier(&finder))
		unregister_tracepoint_module_notifier(&finder);
}
#else
static void find_in_modules(void)
{
}
#endif

#if defined(CONFIG_KPROBES) && defined(MOSTRACE_ARGUMENT)
/* (handle, bh): a buffer that is modified already has its journal_head. */
static int before_modify(struct kprobe *probe, struct pt_regs *regs)
{
	handle_t *handle = (handle_t *)mostrace_argument(regs, 0);
	struct buffer_head *bh = (struct buffer_head *)mostrace_argument(regs, 1);

	if (buffer_jbd(bh) && !bh2jh(bh)->b_modified)
		mostrace_handle_modifies(handle, bh2jh(bh));
	return 0;
}

static struct kprobe modify = {
	.symbol_name = "jbd2_journal_dirty_metadata",
	.pre_handler = before_modify,
};

static bool kprobe_start(void)
{
	/* After an earlier use it contains the address of that time. */
	modify.addr = NULL;
	modify.flags = 0;
	return !register_kprobe(&modify);
}

static void kprobe_stop(void)
{
	unregister_kprobe(&modify);
}
#else
static bool kprobe_start(void)
{
	return false;
}

static void kprobe_stop(void)
{
}
#endif

static bool kprobe_runs;

/* Registers the probes whose tracepoints exist; without ext4 there are none for journals. */
static void register_all(void)
{
	int i;

	modifies_told = false;
	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		if (!probes[i].tp || tracepoint_probe_register(probes[i].tp, probes[i].function, NULL))
			continue;
		probes[i].registered = true;
		modifies_told |= probes[i].function == on_modify;
	}
	if (!modifies_told)
		kprobe_runs = kprobe_start();
	if (!modifies_told && !kprobe_runs)
		pr_warn("mostrace: neither jbd2_dirty_metadata nor kprobes: who modified a block is not known\n");
}

int mostrace_causes_start(void)
{
	int err;

	if (!mostrace_any_filesystem())
		return 0;
	err = mostrace_threads_alloc();
	if (err)
		return err;
	mostrace_handles_reset();
	for_each_kernel_tracepoint(find_probe, NULL);
	find_in_modules();
	register_all();
	return 0;
}

/* No probe runs after this returns. */
void mostrace_causes_stop(void)
{
	int i;

	if (!mostrace_any_filesystem())
		return;
	if (kprobe_runs)
		kprobe_stop();
	kprobe_runs = false;
	for (i = 0; i < ARRAY_SIZE(probes); i++)
		if (probes[i].registered)
			tracepoint_probe_unregister(probes[i].tp, probes[i].function, NULL);
	tracepoint_synchronize_unregister();
	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		if (probes[i].tp)
			module_put(probes[i].owner);
		probes[i].tp = NULL;
		probes[i].owner = NULL;
		probes[i].registered = false;
	}
	mostrace_threads_free();
}
