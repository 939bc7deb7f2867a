/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Block events as blktrace records them, for machines that have neither
 * blktrace nor ftrace's blk tracer: struct blk_io_trace of
 * <linux/blktrace_api.h>, filled in as the kernel's own tracer documents it.
 */
#ifndef MOSTRACE_BLOCKEVENTS_BPF_H
#define MOSTRACE_BLOCKEVENTS_BPF_H

#include "loss.bpf.h"
#include "mostrace.h"
#include "target.bpf.h"

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
	BLK_TC_AHEAD = 1 << 11,
	BLK_TC_META = 1 << 12,
	BLK_TC_DISCARD = 1 << 13,
	BLK_TC_FUA = 1 << 15,
};

#define TC(category) ((__u32)(category) << 16)

/* What happened, and its category: the BLK_TA_ values. */
enum {
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

#define PDU_MAX 16

struct block_record {
	__u16 type;	/* MOSTRACE_BLOCK */
	__u16 size;	/* of what follows that counts: 48 + pdu_len */
	__u32 pad;
	/* struct blk_io_trace */
	__u32 magic;
	__u32 sequence;	/* numbered per CPU by user space */
	__u64 time;
	__u64 sector;
	__u32 bytes;
	__u32 action;
	__u32 pid;
	__u32 device;
	__u32 cpu;
	__u16 error;
	__u16 pdu_len;
	__u8 pdu[PDU_MAX];
};

_Static_assert(sizeof(struct block_record) == 8 + 48 + PDU_MAX, "block_record");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} events SEC(".maps");

struct event {
	__u64 sector;
	__u32 bytes;
	__u32 opf;
	__u32 action;
	__u16 error;
	__u16 pdu_len;
	__u64 pdu[2];
};

#define FLAG(opf, bit, category) \
	(((opf) >> bpf_core_enum_value(enum req_flag_bits, bit) & 1) ? TC(category) : 0)

/* The category bits that blktrace derives from an operation and its flags. */
static __always_inline __u32 categories(__u32 opf)
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

static __noinline int put_event(const struct event *e)
{
	struct block_record *r = bpf_ringbuf_reserve(&events, sizeof(*r), 0);

	if (!r) {
		lose(LOSS_EVENTS_RING);
		return 0;
	}
	r->type = MOSTRACE_BLOCK;
	r->size = 48 + e->pdu_len;
	r->pad = 0;
	r->magic = 0x65617407;
	r->sequence = 0;
	r->time = bpf_ktime_get_ns();
	r->sector = e->sector;
	r->bytes = e->bytes;
	r->action = e->action | categories(e->opf);
	r->pid = bpf_get_current_pid_tgid();
	r->device = target.dev;
	r->cpu = bpf_get_smp_processor_id();
	r->error = e->error;
	r->pdu_len = e->pdu_len;
	__builtin_memcpy(r->pdu, e->pdu, sizeof(r->pdu));
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

/* The target's queue, as its first request told: on 5.10 a queue does not name its disk. */
static __u64 target_queue;

/* blk_rq_trace_sector: passthrough and flush requests have none. */
static __always_inline void request_event(struct request *rq, __u32 what, __u32 bytes, __u16 error)
{
	struct event e = { .bytes = bytes, .error = error };
	bool passthrough;

	if (!is_target_rq(rq))
		return;
	target_queue = (__u64)BPF_CORE_READ(rq, q);
	e.opf = BPF_CORE_READ(rq, cmd_flags);
	passthrough = (e.opf & REQ_OP_MASK) >= REQ_OP_DRV_IN;
	e.sector = BPF_CORE_READ(rq, __sector);
	if (passthrough || e.sector == ~0ULL)
		e.sector = 0;
	e.action = what | (passthrough ? TC(BLK_TC_PC) : TC(BLK_TC_FS));
	put_event(&e);
}

static __always_inline void bio_event(struct bio *bio, __u32 what, __u16 error,
				      const __u64 *pdu, __u16 pdu_len)
{
	struct event e = { .action = what, .error = error, .pdu_len = pdu_len };

	if (!is_target_bio(bio))
		return;
	e.sector = BPF_CORE_READ(bio, bi_iter.bi_sector);
	e.bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
	e.opf = BPF_CORE_READ(bio, bi_opf);
	if (pdu) {
		e.pdu[0] = pdu[0];
		if (pdu_len > 8)
			e.pdu[1] = pdu[1];
	}
	put_event(&e);
}

/*
 * blk_status_t to the magnitude of an errno, for the statuses that a disk can give
 * (block/blk-core.c, blk_errors); the rest is EIO.
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

#define BIO_EVENT(name, tracepoint, what)					\
	SEC("raw_tp/" tracepoint) int event_##name(__u64 *ctx)			\
	{									\
		bio_event(ARG(ctx, args.name), what, 0, 0, 0);			\
		return 0;							\
	}

BIO_EVENT(bio_queue, "block_bio_queue", TA_QUEUE)
BIO_EVENT(getrq, "block_getrq", TA_GETRQ)
BIO_EVENT(backmerge, "block_bio_backmerge", TA_BACKMERGE)
BIO_EVENT(frontmerge, "block_bio_frontmerge", TA_FRONTMERGE)

#define REQUEST_EVENT(name, what)						\
	SEC("raw_tp/block_" #name) int event_##name(__u64 *ctx)			\
	{									\
		struct request *rq = ARG(ctx, args.name);			\
										\
		request_event(rq, what, BPF_CORE_READ(rq, __data_len), 0);	\
		return 0;							\
	}

REQUEST_EVENT(rq_insert, TA_INSERT)
REQUEST_EVENT(rq_issue, TA_ISSUE)
REQUEST_EVENT(rq_merge, TA_BACKMERGE)
REQUEST_EVENT(rq_requeue, TA_REQUEUE)

const volatile bool complete_has_errno;

SEC("raw_tp/block_rq_complete")
int event_rq_complete(__u64 *ctx)
{
	__s32 error = ctx[1];

	/* 5.10 passes a negative errno, later kernels a blk_status_t. */
	error = complete_has_errno ? -error : status_errno(error);
	request_event((struct request *)ctx[0], TA_COMPLETE, ctx[2], error);
	return 0;
}

SEC("raw_tp/block_bio_complete")
int event_bio_complete(__u64 *ctx)
{
	struct bio *bio = (struct bio *)ctx[1];

	bio_event(bio, TA_COMPLETE, status_errno(BPF_CORE_READ(bio, bi_status)), 0, 0);
	return 0;
}

SEC("raw_tp/block_split")
int event_split(__u64 *ctx)
{
	struct bio *bio = ARG(ctx, args.split);
	__u64 pdu = __builtin_bswap64((__u32)ARG_AFTER(ctx, args.split, 1));

	bio_event(bio, TA_SPLIT, status_errno(BPF_CORE_READ(bio, bi_status)), &pdu, 8);
	return 0;
}

SEC("raw_tp/block_bio_remap")
int event_bio_remap(__u64 *ctx)
{
	struct bio *bio = ARG(ctx, args.remap);
	__u32 from = ARG_AFTER(ctx, args.remap, 1);
	__u64 sector = ARG_AFTER(ctx, args.remap, 2);
	__u64 pdu[2];

	/* struct blk_io_trace_remap: big-endian device_from, device_to, sector_from */
	pdu[0] = __builtin_bswap32(from) | (__u64)__builtin_bswap32(bio_dev(bio)) << 32;
	pdu[1] = __builtin_bswap64(sector);
	bio_event(bio, TA_REMAP, status_errno(BPF_CORE_READ(bio, bi_status)), pdu, 16);
	return 0;
}

static __always_inline bool is_target_queue(struct request_queue *q)
{
	if (bpf_core_field_exists(struct request_queue, disk))
		return is_target_disk(BPF_CORE_READ(q, disk));
	return (__u64)q == target_queue;
}

SEC("raw_tp/block_plug")
int event_plug(__u64 *ctx)
{
	struct event e = { .action = TA_PLUG };

	if (is_target_queue((struct request_queue *)ctx[0]))
		put_event(&e);
	return 0;
}

SEC("raw_tp/block_unplug")
int event_unplug(__u64 *ctx)
{
	struct event e = { .pdu_len = 8 };

	if (!is_target_queue((struct request_queue *)ctx[0]))
		return 0;
	e.action = ctx[2] ? TA_UNPLUG_IO : TA_UNPLUG_TIMER;
	e.pdu[0] = __builtin_bswap64(ctx[1]);
	put_event(&e);
	return 0;
}

#endif
