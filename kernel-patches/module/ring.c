// SPDX-License-Identifier: GPL-2.0-only
/*
 * One ring of bytes per CPU. Only its CPU writes to it, with interrupts off; only the one reader
 * reads from it. If a ring is full, the new entry is dropped and counted; when a ring becomes half
 * full, the reader is woken.
 */
#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/percpu.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/topology.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include "count.h"
#include "ring.h"

struct ring {
	u8 *data;
	/*
	 * Total bytes written and read. They may wrap, because the ring's size is a power of two.
	 */
	u32 head;
	u32 tail ____cacheline_aligned_in_smp;
};

static DEFINE_PER_CPU(struct ring, rings);

/* The size of each ring. */
static u32 ring_bytes;

static void ring_write(struct ring *ring, const void *from, u32 size)
{
	u32 at = ring->head & (ring_bytes - 1);
	u32 first = min(size, ring_bytes - at);

	memcpy(ring->data + at, from, first);
	if (first < size)
		memcpy(ring->data, from + first, size - first);
}

/* Probes run inside the block layer, where no task can be woken: an interrupt does that. */
static void wake(struct irq_work *work)
{
	wake_up_interruptible(&mostrace_waiters);
}

DECLARE_WAIT_QUEUE_HEAD(mostrace_waiters);
static struct irq_work waking = { .func = wake };

/* Passes an entry to the reader, as one of this CPU. May be called in any context but NMI. */
void mostrace_put(struct mostrace_entry *entry)
{
	struct ring *ring;
	unsigned long flags;
	u32 used;

	local_irq_save(flags);
	ring = this_cpu_ptr(&rings);
	entry->cpu = smp_processor_id();
	/* Pairs with take: the bytes that it frees have been read. */
	used = ring->head - smp_load_acquire(&ring->tail);
	if (ring_bytes - used < entry->size) {
		mostrace_count(MOSTRACE_LOST_ENTRIES_RING);
	} else {
		ring_write(ring, entry, entry->size);
		/* Pairs with ring_used: the entry is complete. */
		smp_store_release(&ring->head, ring->head + entry->size);
		mostrace_count(MOSTRACE_COUNT_ENTRIES);
		if (used < ring_bytes / 2 && used + entry->size >= ring_bytes / 2)
			irq_work_queue(&waking);
	}
	local_irq_restore(flags);
}

static u32 ring_used(const struct ring *ring)
{
	/* Pairs with mostrace_put. */
	return smp_load_acquire(&ring->head) - ring->tail;
}

/* Returns true if one of the rings holds that many bytes. */
static bool any_holds(u32 bytes)
{
	int cpu;

	for_each_possible_cpu(cpu)
		if (ring_used(per_cpu_ptr(&rings, cpu)) >= bytes)
			return true;
	return false;
}

bool mostrace_rings_filled(void)
{
	return any_holds(1);
}

bool mostrace_rings_half_full(void)
{
	return any_holds(ring_bytes / 2);
}

/*
 * Returns the head of the entry at `skip` bytes behind the tail; the head may continue at the
 * ring's beginning.
 */
static struct mostrace_entry head_at(const struct ring *ring, u32 skip)
{
	u32 at = (ring->tail + skip) & (ring_bytes - 1);
	struct mostrace_entry head;
	u32 first = min_t(u32, sizeof(head), ring_bytes - at);

	memcpy(&head, ring->data + at, first);
	memcpy((u8 *)&head + first, ring->data, sizeof(head) - first);
	return head;
}

/*
 * Returns the ring whose next entry is the oldest; `until` becomes the time of the second oldest
 * ring's.
 */
static struct ring *oldest(u64 *until)
{
	struct ring *ring, *found = NULL;
	u64 time, first = U64_MAX;
	int cpu;

	*until = U64_MAX;
	for_each_possible_cpu(cpu) {
		ring = per_cpu_ptr(&rings, cpu);
		if (!ring_used(ring))
			continue;
		time = head_at(ring, 0).time_ns;
		if (!found || time < first) {
			*until = first;
			first = time;
			found = ring;
		} else {
			*until = min(*until, time);
		}
	}
	return found;
}

/*
 * Returns the length of a ring's entries up to a time, but at least of the first one, until `room`
 * is full.
 */
static u32 bytes_until(const struct ring *ring, u64 until, size_t room)
{
	u32 used = ring_used(ring), at = 0;
	struct mostrace_entry head;

	/* No other ring has entries to be read in between. */
	if (until == U64_MAX && used <= room)
		return used;
	while (at < used && at < room) {
		head = head_at(ring, at);
		if (at && head.time_ns > until)
			break;
		at += head.size;
	}
	return at;
}

/* Copies the next bytes of a ring and returns their number. */
static u32 copy_bytes(struct ring *ring, char __user *to, u32 bytes)
{
	u32 at = ring->tail & (ring_bytes - 1);
	u32 first = min(bytes, ring_bytes - at), left;

	left = copy_to_user(to, ring->data + at, first);
	if (!left)
		left = copy_to_user(to + first, ring->data, bytes - first);
	else
		left += bytes - first;
	/* Pairs with mostrace_put: these bytes may be overwritten. */
	smp_store_release(&ring->tail, ring->tail + bytes - left);
	return bytes - left;
}

/* The ring whose entry was copied in part, and the rest of it. */
static struct ring *part_ring;
static u32 part_bytes;

/*
 * Passes entries to the reader. The last one may be cut, and the next call continues with its rest.
 * Returns the number of bytes, which is less than `room` if there are no more entries; -EFAULT if
 * there were entries but none could be copied. Only the reader may call this.
 */
ssize_t mostrace_take(char __user *to, size_t room)
{
	size_t done = 0;
	u32 bytes, n;
	u64 until;

	while (done < room) {
		if (!part_bytes) {
			part_ring = oldest(&until);
			if (!part_ring)
				break;
			part_bytes = bytes_until(part_ring, until, room - done);
		}
		bytes = min_t(size_t, part_bytes, room - done);
		n = copy_bytes(part_ring, to + done, bytes);
		part_bytes -= n;
		done += n;
		if (n < bytes)
			return done ?: -EFAULT;
	}
	return done;
}

/* Allocates the rings, which are empty then. */
int mostrace_rings_alloc(u32 bytes)
{
	struct ring *ring;
	int cpu;

	ring_bytes = bytes;
	part_bytes = 0;
	for_each_possible_cpu(cpu) {
		ring = per_cpu_ptr(&rings, cpu);
		ring->head = 0;
		ring->tail = 0;
		ring->data = vmalloc_node(bytes, cpu_to_node(cpu));
		if (!ring->data) {
			mostrace_rings_free();
			return -ENOMEM;
		}
	}
	return 0;
}

void mostrace_rings_free(void)
{
	struct ring *ring;
	int cpu;

	irq_work_sync(&waking);
	for_each_possible_cpu(cpu) {
		ring = per_cpu_ptr(&rings, cpu);
		vfree(ring->data);
		ring->data = NULL;
		ring->tail = ring->head;
	}
}
