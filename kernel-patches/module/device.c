// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/mostrace: recording lasts as long as its one reader has it open. The
 * stream is that of stream.h; it ends only with the reader.
 */
#include <linux/build_bug.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include "claim.h"
#include "count.h"
#include "dirtier.h"
#include "endio.h"
#include "names.h"
#include "probe.h"
#include "ring.h"
#include "stream.h"
#include "submitter.h"
#include "target.h"

#define RING_KB_MIN 16
#define RING_KB_MAX SZ_1M

static unsigned int ring_kb = SZ_1K;
module_param(ring_kb, uint, 0600);
MODULE_PARM_DESC(ring_kb, "KiB of the ring of each CPU, rounded up to a power of two (default 1024)");

/*
 * Probes run inside the block layer and wake nobody: while a reader waits, a
 * worker looks into the rings until there is something.
 */
#define LOOK_JIFFIES max(HZ / 50, 1)

static void look(struct work_struct *work);

static DECLARE_WAIT_QUEUE_HEAD(waiters);
static DECLARE_DELAYED_WORK(looking, look);

static_assert(sizeof(struct mostrace_stream) == 40);
static_assert(sizeof(struct mostrace_entry) == 32);
static_assert(sizeof(struct mostrace_process) == 88);
static_assert(sizeof(struct mostrace_file) == 72);
static_assert(sizeof(struct mostrace_dirtier) == 72);

/* What was taken from the rings and not read yet: any size of read will do. */
static struct {
	struct mutex lock;	/* of the reader's threads */
	size_t at;
	size_t len;
	union {
		struct mostrace_stream stream;
		u8 bytes[SZ_4K];
	};
} pending = { .lock = __MUTEX_INITIALIZER(pending.lock) };

static bool filled(void)
{
	return READ_ONCE(pending.len) || mostrace_rings_filled();
}

static void look(struct work_struct *work)
{
	if (filled())
		wake_up_interruptible(&waiters);
	else if (wq_has_sleeper(&waiters))
		schedule_delayed_work(&looking, LOOK_JIFFIES);
}

static bool filled_or_look(void)
{
	if (filled())
		return true;
	schedule_delayed_work(&looking, LOOK_JIFFIES);
	return false;
}

static void begin_stream(u32 ring_bytes)
{
	pending.stream = (struct mostrace_stream){
		.magic = MOSTRACE_STREAM_MAGIC,
		.byte_order = MOSTRACE_STREAM_ORDER,
		.version = MOSTRACE_STREAM_VERSION,
		.header_size = sizeof(struct mostrace_stream),
		.entry_size = sizeof(struct mostrace_entry),
		.process_size = sizeof(struct mostrace_process),
		.file_size = sizeof(struct mostrace_file),
		.page_size = PAGE_SIZE,
		.start_ns = ktime_get_ns(),
		.ring_bytes = ring_bytes,
	};
	pending.at = 0;
	pending.len = sizeof(pending.stream);
}

static int start(void)
{
	unsigned int kb = clamp(READ_ONCE(ring_kb), (unsigned int)RING_KB_MIN,
				(unsigned int)RING_KB_MAX);
	u32 ring_bytes = roundup_pow_of_two(kb) * SZ_1K;
	int err;

	if (!mostrace_any_target())
		return -ENODEV;
	mostrace_counts_reset();
	err = mostrace_rings_alloc(ring_bytes);
	if (err)
		return err;
	err = mostrace_submitters_alloc();
	if (err)
		goto free_rings;
	err = mostrace_dirtiers_alloc();
	if (err)
		goto free_submitters;
	begin_stream(ring_bytes);
	err = mostrace_probes_start();
	if (err)
		goto free_dirtiers;
	return 0;

free_dirtiers:
	mostrace_dirtiers_free();
free_submitters:
	mostrace_submitters_free();
free_rings:
	mostrace_rings_free();
	return err;
}

static int mostrace_open(struct inode *inode, struct file *file)
{
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (!mostrace_claim())
		return -EBUSY;
	err = start();
	if (err) {
		mostrace_release();
		return err;
	}
	return stream_open(inode, file);
}

static int mostrace_close(struct inode *inode, struct file *file)
{
	mostrace_probes_stop();
	cancel_delayed_work_sync(&looking);
	mostrace_dirtiers_free();
	mostrace_submitters_free();
	mostrace_rings_free();
	mostrace_release();
	return 0;
}

/* Copies what there is; -EFAULT only if nothing was. */
static ssize_t read_filled(char __user *to, size_t size)
{
	size_t done = 0, n;

	while (done < size) {
		if (!pending.len) {
			pending.at = 0;
			n = mostrace_take(pending.bytes, sizeof(pending.bytes));
			WRITE_ONCE(pending.len, n);
			if (!pending.len)
				break;
		}
		n = min(size - done, pending.len);
		if (copy_to_user(to + done, pending.bytes + pending.at, n))
			return done ? done : -EFAULT;
		pending.at += n;
		WRITE_ONCE(pending.len, pending.len - n);
		done += n;
		if (signal_pending(current))
			break;
		cond_resched();
	}
	return done;
}

static ssize_t mostrace_read(struct file *file, char __user *to, size_t size, loff_t *pos)
{
	ssize_t n;

	for (;;) {
		if (mutex_lock_interruptible(&pending.lock))
			return -ERESTARTSYS;
		n = read_filled(to, size);
		mutex_unlock(&pending.lock);
		if (n || !size)
			return n;
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		if (wait_event_interruptible(waiters, filled_or_look()))
			return -ERESTARTSYS;
	}
}

static __poll_t mostrace_poll(struct file *file, poll_table *table)
{
	poll_wait(file, &waiters, table);
	return filled_or_look() ? EPOLLIN | EPOLLRDNORM : 0;
}

static const struct file_operations mostrace_fops = {
	.owner = THIS_MODULE,
	.open = mostrace_open,
	.release = mostrace_close,
	.read = mostrace_read,
	.poll = mostrace_poll,
};

static struct miscdevice mostrace_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "mostrace",
	.fops = &mostrace_fops,
	.mode = 0600,
	.groups = mostrace_count_groups,
};

static int __init mostrace_init(void)
{
	int err = mostrace_probes_find();

	mostrace_names_init();
	if (err)
		return err;
	err = mostrace_endio_init();
	if (err)
		return err;
	err = misc_register(&mostrace_device);
	if (err)
		mostrace_endio_exit();
	return err;
}
module_init(mostrace_init);

static void __exit mostrace_exit(void)
{
	misc_deregister(&mostrace_device);
	mostrace_endio_exit();
}
module_exit(mostrace_exit);

MODULE_DESCRIPTION("Records who writes which file's blocks");
MODULE_LICENSE("GPL");
