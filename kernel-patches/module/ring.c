// SPDX-License-Identifier: GPL-2.0-only
/*
 * One ring of bytes per CPU. Only its CPU writes to it, with interrupts off;
 * only the one reader reads. A full ring drops the new entry and counts it.
 */
#include <linux/cpumask.h>
#include <linux/irqflags.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/topology.h>
#include <linux/vmalloc.h>
#include "count.h"
#include "ring.h"

struct ring {
	u8 *data;
	/* Bytes ever written and read; they wrap, as the ring's size is a power of two. */
	u32 head;
	u32 tail ____cacheline_aligned_in_smp;
};

static DEFINE_PER_CPU(struct ring, rings);

/* Of each. */
static u32 ring_bytes;

static void ring_write(struct ring *ring, const void *from, u32 size)
{
	u32 at = ring->head & (ring_bytes - 1);
	u32 first = min(size, ring_bytes - at);

	memcpy(ring->data + at, from, first);
	if (first < size)
		memcpy(ring->data, from + first, size - first);
}

/* From `skip` bytes behind the tail on. */
static void ring_read(const struct ring *ring, u32 skip, void *to, u32 size)
{
	u32 at = (ring->tail + skip) & (ring_bytes - 1);
	u32 first = min(size, ring_bytes - at);

	memcpy(to, ring->data + at, first);
	if (first < size)
		memcpy(to + first, ring->data, size - first);
}

/* Hands an entry to the reader, as that of this CPU. From any context but NMI. */
void mostrace_put(struct mostrace_entry *entry)
{
	struct ring *ring;
	unsigned long flags;
	u32 used;

	local_irq_save(flags);
	ring = this_cpu_ptr(&rings);
	entry->cpu = smp_processor_id();
	/* Pairs with mostrace_take: the bytes it frees have been read. */
	used = ring->head - smp_load_acquire(&ring->tail);
	if (ring_bytes - used < entry->size) {
		mostrace_count(MOSTRACE_LOST_ENTRIES_RING);
	} else {
		ring_write(ring, entry, entry->size);
		/* Pairs with ring_used: the entry is whole. */
		smp_store_release(&ring->head, ring->head + entry->size);
		mostrace_count(MOSTRACE_COUNT_ENTRIES);
	}
	local_irq_restore(flags);
}

static u32 ring_used(const struct ring *ring)
{
	/* Pairs with mostrace_put. */
	return smp_load_acquire(&ring->head) - ring->tail;
}

bool mostrace_rings_filled(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		if (ring_used(per_cpu_ptr(&rings, cpu)))
			return true;
	return false;
}

/* The ring whose next entry is the oldest; `until` is the time of the next oldest ring's. */
static struct ring *oldest(u64 *until)
{
	struct ring *ring, *found = NULL;
	struct mostrace_entry next;
	u64 first = U64_MAX;
	int cpu;

	*until = U64_MAX;
	for_each_possible_cpu(cpu) {
		ring = per_cpu_ptr(&rings, cpu);
		if (!ring_used(ring))
			continue;
		ring_read(ring, 0, &next, sizeof(next));
		if (!found || next.time_ns < first) {
			*until = first;
			first = next.time_ns;
			found = ring;
		} else {
			*until = min(*until, next.time_ns);
		}
	}
	return found;
}

/* Moves entries of one ring, up to a time, into `to`; `full`: there was no room for the next. */
static size_t take_until(struct ring *ring, u64 until, void *to, size_t room, bool *full)
{
	u32 used = ring_used(ring), at = 0;
	struct mostrace_entry head;

	while (at < used) {
		ring_read(ring, at, &head, sizeof(head));
		*full = head.size > room - at;
		if (*full || (at && head.time_ns > until))
			break;
		ring_read(ring, at, to + at, head.size);
		at += head.size;
	}
	/* Pairs with mostrace_put: these bytes may be overwritten. */
	smp_store_release(&ring->tail, ring->tail + at);
	return at;
}

/* Moves entries, whole ones, into `to`; returns the bytes. For the reader alone. */
size_t mostrace_take(void *to, size_t room)
{
	struct ring *ring;
	bool full = false;
	size_t done = 0;
	u64 until;

	while (!full && (ring = oldest(&until)))
		done += take_until(ring, until, to + done, room - done, &full);
	return done;
}

/* All empty. */
int mostrace_rings_alloc(u32 bytes)
{
	struct ring *ring;
	int cpu;

	ring_bytes = bytes;
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

	for_each_possible_cpu(cpu) {
		ring = per_cpu_ptr(&rings, cpu);
		vfree(ring->data);
		ring->data = NULL;
		ring->tail = ring->head;
	}
}
