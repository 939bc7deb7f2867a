/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Block events as blktrace records them: the fields of struct blk_io_trace in <linux/blktrace_api.h> that differ
 * between events. User space completes the record.
 */
#ifndef MOSTRACE_BLOCKEVENTS_BPF_H
#define MOSTRACE_BLOCKEVENTS_BPF_H

#include "compat.bpf.h"
#include "mostrace.h"
#include "ring.bpf.h"

enum {
	BLK_TC_READ = 1 << 0,
	BLK_TC_WRITE = 1 << 1,
	BLK_TC_FLUSH = 1 << 2,
	BLK_TC_SYNC = 1 << 3,
	BLK_TC_QUEUE = 1 << 4,
	BLK_TC_REQUEUE = 1 << 5,
	BLK_TC_ISSUE = 1 << 6,
	BLK_TC_COMPLETE = 1 << 7,
	BLK_TC_FS = 1 << 8,
	BLK_TC_PC = 1 << 9,
	BLK_TC_NOTIFY = 1 << 10,
	BLK_TC_AHEAD = 1 << 11,
	BLK_TC_META = 1 << 12,
	BLK_TC_DISCARD = 1 << 13,
	BLK_TC_FUA = 1 << 15,
};

#define TC(category) ((__u32)(category) << 16)

/* The action and its category: the BLK_TA_ and BLK_TN_ values. */
enum {
	TN_PROCESS = 0 | TC(BLK_TC_NOTIFY),
	TA_QUEUE = 1 | TC(BLK_TC_QUEUE),
	TA_BACKMERGE = 2 | TC(BLK_TC_QUEUE),
	TA_FRONTMERGE = 3 | TC(BLK_TC_QUEUE),
	TA_GETRQ = 4 | TC(BLK_TC_QUEUE),
	TA_REQUEUE = 6 | TC(BLK_TC_REQUEUE),
	TA_ISSUE = 7 | TC(BLK_TC_ISSUE),
	TA_COMPLETE = 8 | TC(BLK_TC_COMPLETE),
	TA_PLUG = 9 | TC(BLK_TC_QUEUE),
	TA_UNPLUG_IO = 10 | TC(BLK_TC_QUEUE),
	TA_UNPLUG_TIMER = 11 | TC(BLK_TC_QUEUE),
	TA_INSERT = 12 | TC(BLK_TC_QUEUE),
	TA_SPLIT = 13,
	TA_REMAP = 15 | TC(BLK_TC_QUEUE),
};

/* It begins like an entry, because both may be in one record of the ring. */
struct block_record {
	__u16 type;		/* MOSTRACE_BLOCK */
	__u16 size;		/* with the payload */
	__u32 pid;
	__u64 time;
	__u64 sector;
	__u32 bytes;
	__u32 action;
	__u16 cpu;
	__u16 error;
	__u32 pattern;		/* the number of the pattern that the record is from now on (like.bpf.h), or 0 */
};

/* task->comm, the payload of a note of a task's name. */
#define NAME_BYTES 16

_Static_assert(sizeof(struct block_record) == 40, "block_record");

/* Number of records that found the ring full. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} events_lost SEC(".maps");

/*
 * Returns a number that a bio has from its Q to its C: several bios for the same sectors may be in flight, and only
 * this distinguishes their requests. It is the bio's address, which user space encodes before it is recorded: the
 * verifier allows no arithmetic on a pointer other than to follow it. 0 for no bio.
 */
static __always_inline __u64 bio_number(const struct bio *bio)
{
	return (__u64)bio;
}

static __always_inline void lose_event(void)
{
	__u32 zero = 0;
	__u64 *lost = bpf_map_lookup_elem(&events_lost, &zero);

	/* A program that runs in an interrupt may count on the same CPU at the same time. */
	if (lost)
		__sync_fetch_and_add(lost, 1);
}

/*
 * Puts an event into the ring; all its fields but the type, the size and the CPU must be filled in. `pdu` is the
 * payload behind the record and has `pdu_len` bytes, a constant: 0, 8, 16 or 24.
 */
static __always_inline void put_event(void *ring, struct block_record event, const __u64 *pdu, __u32 pdu_len)
{
	struct block_record *r = bpf_ringbuf_reserve(ring, sizeof(*r) + pdu_len, 0);
	__u64 *to = (__u64 *)(r + 1);

	if (!r) {
		lose_event();
		return;
	}
	event.type = MOSTRACE_BLOCK;
	event.size = sizeof(*r) + pdu_len;
	event.cpu = bpf_get_smp_processor_id();
	*r = event;
	if (pdu_len)
		to[0] = pdu[0];
	if (pdu_len > 8)
		to[1] = pdu[1];
	if (pdu_len > 16)
		to[2] = pdu[2];
	bpf_ringbuf_submit(r, wake_flags(ring, event.time));
}

/* The name of a thread, and when it was told. */
struct thread_name {
	__u64 comm[NAME_BYTES / 8];
	__u64 pid;
	__u64 time;
};

/* It is told again after this time, so that a later segment has the names of what ended within it. */
#define NAME_AGAIN_NS 1000000000ULL

/* A power of 2. */
#define NAMES_TOLD 64

/* Each CPU remembers, for each slot, the name that it told last. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NAMES_TOLD);
	__type(key, __u32);
	__type(value, struct thread_name);
} names_told SEC(".maps");

/* This is a function of its own because it is called seldom, and so that its stack is not part of a walk over pages. */
static __noinline void tell_name(void *ring, const struct thread_name *name)
{
	/* The time must be part of the initialiser: if it is set in a copy of a constant, clang 14 loses it. */
	put_event(ring, (struct block_record){ .time = name->time, .action = TN_PROCESS, .pid = name->pid }, name->comm, NAME_BYTES);
}

/* Records the name of the current thread, `pid`: it may have ended when user space asks for it. */
static __always_inline void put_name(void *ring, __u64 time, __u32 pid)
{
	__u32 slot = pid & (NAMES_TOLD - 1);
	struct thread_name *told = bpf_map_lookup_elem(&names_told, &slot);
	struct thread_name name = { .pid = pid, .time = time };

	if (!told)
		return;
	current_comm((char *)name.comm);
	if (told->pid == name.pid && told->comm[0] == name.comm[0] && told->comm[1] == name.comm[1] &&
	    time - told->time < NAME_AGAIN_NS)
		return;
	*told = name;
	tell_name(ring, told);
}

/* This has 64 bits like the bit's number, because shortening it would take more instructions than using it. */
#define FLAG(opf, bit, category) \
	(((__u64)(opf) >> bpf_core_enum_value(enum req_flag_bits, bit) & 1) ? TC(category) : 0)

/* Derives the category bits as blktrace does. */
static __noinline __u32 derive_categories(__u32 opf)
{
	__u32 op = opf & REQ_OP_MASK;
	__u32 what = op & 1 ? TC(BLK_TC_WRITE) : TC(BLK_TC_READ);

	what |= FLAG(opf, __REQ_SYNC, BLK_TC_SYNC);
	what |= FLAG(opf, __REQ_RAHEAD, BLK_TC_AHEAD);
	what |= FLAG(opf, __REQ_META, BLK_TC_META);
	what |= FLAG(opf, __REQ_PREFLUSH, BLK_TC_FLUSH);
	what |= FLAG(opf, __REQ_FUA, BLK_TC_FUA);
	if (op == REQ_OP_DISCARD || op == REQ_OP_SECURE_ERASE)
		what |= TC(BLK_TC_DISCARD);
	if (op == REQ_OP_FLUSH)
		what |= TC(BLK_TC_FLUSH);
	return what;
}

/* A power of 2. */
#define CATEGORIES 16

/*
 * Each element has the categories that were derived last in its low half, and in its high half what they were derived from. It is
 * read and written at once.
 */
static volatile __u64 derived_categories[CATEGORIES];

/* Returns the category bits of an operation and its flags. There are few that differ. */
static __always_inline __u32 categories(__u32 opf)
{
	volatile __u64 *derived = &derived_categories[(opf ^ opf >> 11 ^ opf >> 16) & (CATEGORIES - 1)];
	__u64 last = *derived;
	__u32 what = last;

	/* Every operation has a category, so 0 is none that was derived. */
	if (!what || last >> 32 != opf) {
		what = derive_categories(opf);
		*derived = (__u64)opf << 32 | what;
	}
	return what;
}

/* The event of a bio that is queued. */
struct queued_record {
	struct block_record event;
	__u64 bio;		/* bio_number */
};

/*
 * Converts a blk_status_t to the magnitude of an errno, for the statuses that a disk can report (block/blk-core.c,
 * blk_errors); all others become EIO.
 */
static __always_inline __u16 status_errno(__u8 status)
{
	switch (status) {
	case 0: return 0;
	case 1: return 95;	/* NOTSUPP */
	case 2: return 110;	/* TIMEOUT */
	case 3: return 28;	/* NOSPC */
	case 4: return 67;	/* TRANSPORT: ENOLINK */
	case 5: return 121;	/* TARGET: EREMOTEIO */
	case 6: return 52;	/* RESV_CONFLICT: EBADE */
	case 7: return 61;	/* MEDIUM: ENODATA */
	case 8: return 84;	/* PROTECTION: EILSEQ */
	case 9: return 12;	/* RESOURCE: ENOMEM */
	case 12: return 11;	/* AGAIN */
	default: return 5;
	}
}

#endif
