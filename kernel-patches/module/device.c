// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/mostrace: recording lasts as long as its only reader has it open. The stream is described in
 * stream.h; it ends only when the reader closes it.
 */
#include <linux/build_bug.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <uapi/linux/eventpoll.h>
#include "causes.h"
#include "claim.h"
#include "compat.h"
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

/* How long a reader sleeps while the rings are less than half full. */
#define LOOK_JIFFIES max(HZ / 5, 1)

static void look(struct work_struct *work);

/* Wakes those that poll. */
static DECLARE_DELAYED_WORK(looking, look);

static_assert(sizeof(struct mostrace_stream) == 40);
static_assert(sizeof(struct mostrace_entry) == 32);
static_assert(sizeof(struct mostrace_process) == 88);
static_assert(sizeof(struct mostrace_file) == 72);
static_assert(sizeof(struct mostrace_dirtier) == 72);
static_assert(sizeof(struct mostrace_handle) == 120);
static_assert(sizeof(struct mostrace_dirtied) == 48);
static_assert(sizeof(struct mostrace_call) == 120);

/* The reader: a process, or several that share the open file. */
static struct {
	struct mutex lock;	/* protects the other fields */
	struct mostrace_stream stream;
	size_t begun;	/* bytes of the stream's header that were read */
	bool drained;	/* the last read found less than it asked for */
} reader = { .lock = __MUTEX_INITIALIZER(reader.lock) };

static bool filled(void)
{
	return READ_ONCE(reader.begun) < sizeof(reader.stream) || mostrace_rings_filled();
}

static void look(struct work_struct *work)
{
	if (filled())
		wake_up_interruptible(&mostrace_waiters);
	else if (wq_has_sleeper(&mostrace_waiters))
		schedule_delayed_work(&looking, LOOK_JIFFIES);
}

static void begin_stream(u32 ring_bytes)
{
	reader.stream = (struct mostrace_stream){
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
	reader.begun = 0;
	reader.drained = false;
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
	err = mostrace_causes_start();
	if (err)
		goto free_dirtiers;
	err = mostrace_probes_start();
	if (err)
		goto stop_causes;
	return 0;

stop_causes:
	mostrace_causes_stop();
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
	mostrace_causes_stop();
	cancel_delayed_work_sync(&looking);
	mostrace_dirtiers_free();
	mostrace_submitters_free();
	mostrace_rings_free();
	mostrace_release();
	return 0;
}

/* Copies what is left of the stream's header. */
static ssize_t read_header(char __user *to, size_t size)
{
	size_t bytes = min(size, sizeof(reader.stream) - reader.begun);

	if (copy_to_user(to, (u8 *)&reader.stream + reader.begun, bytes))
		return -EFAULT;
	WRITE_ONCE(reader.begun, reader.begun + bytes);
	return bytes;
}

/* Copies what is available; -EFAULT only if nothing could be copied. */
static ssize_t read_filled(char __user *to, size_t size)
{
	bool begins = reader.begun < sizeof(reader.stream);
	ssize_t n = begins ? read_header(to, size) : mostrace_take(to, size);

	WRITE_ONCE(reader.drained, n >= 0 && n < size);
	return n;
}

static ssize_t mostrace_read(struct file *file, char __user *to, size_t size, loff_t *pos)
{
	bool wait = !(file->f_flags & O_NONBLOCK);
	ssize_t n;

	for (;;) {
		/* Passing many entries at a time costs less. */
		if (wait && READ_ONCE(reader.drained) &&
		    wait_event_interruptible_timeout(mostrace_waiters, mostrace_rings_half_full(),
						     LOOK_JIFFIES) < 0)
			return -ERESTARTSYS;
		if (mutex_lock_interruptible(&reader.lock))
			return -ERESTARTSYS;
		n = read_filled(to, size);
		mutex_unlock(&reader.lock);
		if (n || !size)
			return n;
		if (!wait)
			return -EAGAIN;
	}
}

static __poll_t mostrace_poll(struct file *file, poll_table *table)
{
	poll_wait(file, &mostrace_waiters, table);
	if (filled())
		return EPOLLIN | EPOLLRDNORM;
	schedule_delayed_work(&looking, LOOK_JIFFIES);
	return 0;
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
