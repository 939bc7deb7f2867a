// SPDX-License-Identifier: GPL-2.0-only
/*
 * The probes of block events, for machines that have neither blktrace nor ftrace's blk tracer.
 *
 * BTF tracepoints: their arguments are typed, so that fields are loaded and not copied by a helper. Where the kernel has no
 * BTF they are raw ones. What a life cycle is made of (Q, X, I, D, R, C) is recorded always, the rest of what blktrace
 * has on request.
 */
#include "blockevents.bpf.h"
#include "flushqueue.bpf.h"
#include "target.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#ifdef MOSTRACE_UNTYPED
#define TRACEPOINT(name) SEC("raw_tp/" name)
#define GET(pointer, ...) BPF_CORE_READ(pointer, __VA_ARGS__)
#else
#define TRACEPOINT(name) SEC("tp_btf/" name)
#define GET(pointer, ...) ___arrow((pointer), __VA_ARGS__)
#endif

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} events SEC(".maps");

/* Whether 5.10 passes the end of a request a negative errno; later kernels a blk_status_t. */
const volatile bool complete_has_errno;

/* The target's queue, as its first request told: on 5.10 a queue does not name its disk. */
static __u64 target_queue;

static __always_inline bool is_whole_disk(void)
{
	return target.dev == target.disk_dev;
}

static __always_inline bool has_target_disk(struct gendisk *disk)
{
	return disk && (GET(disk, major) << 20 | GET(disk, first_minor)) == target.disk_dev;
}

static __always_inline bool has_target_bio(struct bio *bio)
{
	__u32 bytes, dev;
	__u64 sector;

	if (!bpf_core_field_exists(struct bio___bdev, bi_bdev)) {
		if (!has_target_disk(GET((struct bio___disk *)bio, bi_disk)))
			return false;
	} else if (!has_target_disk(GET((struct bio___bdev *)bio, bi_bdev, bd_disk))) {
		return false;
	}
	if (is_whole_disk())
		return true;
	bytes = GET(bio, bi_iter.bi_size);
	sector = GET(bio, bi_iter.bi_sector);
	if (bytes)
		return sector < target.end && sector + ((bytes + 511) >> 9) > target.start;
	/* A flush has no sectors: its device tells, if it tells. */
	dev = bio_dev(bio);
	return !dev || dev == target.dev;
}

static __always_inline bool is_passthrough(__u32 opf)
{
	return (opf & REQ_OP_MASK) >= REQ_OP_SCSI_IN;
}

/*
 * Whether a request is the partition's. One without bytes is a flush that was asked for, whose bio tells, or the
 * device's own, made for those that wait for it. A passthrough command has no sectors and is the disk's.
 */
static __always_inline bool has_target_sectors(struct request *rq, __u32 opf)
{
	__u32 bytes = GET(rq, __data_len);
	__u64 sector = GET(rq, __sector);
	struct bio *bio = GET(rq, bio);
	__u32 dev;

	if (is_passthrough(opf))
		return false;
	if (bytes)
		return sector < target.end && sector + ((bytes + 511) >> 9) > target.start;
	if (!bio)
		return flush_serves(rq, target.dev);
	dev = bio_dev(bio);
	return !dev || dev == target.dev;
}

/* blk_rq_trace_sector: passthrough and flush requests have none. */
static __always_inline int request_event(struct request *rq, __u32 what, __u32 bytes, __u16 error)
{
	struct block_record e = { .bytes = bytes, .error = error };
	struct gendisk *disk;
	__u32 opf;

	if (bpf_core_field_exists(struct request___rq_disk, rq_disk))
		disk = GET((struct request___rq_disk *)rq, rq_disk);
	else
		disk = GET(rq, q, disk);
	if (!has_target_disk(disk))
		return 0;
	opf = GET(rq, cmd_flags);
	if (!is_whole_disk() && !has_target_sectors(rq, opf))
		return 0;
	e.time = bpf_ktime_get_ns();
	if (!bpf_core_field_exists(struct request_queue, disk))
		target_queue = (__u64)GET(rq, q);
	e.sector = GET(rq, __sector);
	if (is_passthrough(opf) || e.sector == ~0ULL)
		e.sector = 0;
	e.action = what | categories(opf) | (is_passthrough(opf) ? TC(BLK_TC_PC) : TC(BLK_TC_FS));
	put_event(&events, e, 0, 0);
	return 0;
}

static __always_inline struct block_record of_bio(struct bio *bio, __u32 what, __u16 error)
{
	struct block_record e = {
		.time = bpf_ktime_get_ns(),
		.sector = GET(bio, bi_iter.bi_sector),
		.bytes = GET(bio, bi_iter.bi_size),
		.action = what | categories(GET(bio, bi_opf)),
		.error = error,
	};

	return e;
}

/* Not loaded where the probes of entries tell of it, see tell_queued. */
TRACEPOINT("block_bio_queue")
int event_bio_queue(__u64 *ctx)
{
	struct bio *bio = ARG(ctx, args.bio_queue);

	if (has_target_bio(bio))
		put_queued(&events, bpf_ktime_get_ns(), GET(bio, bi_iter.bi_sector), GET(bio, bi_iter.bi_size),
			   GET(bio, bi_opf));
	return 0;
}

#define BIO_EVENT(name, tracepoint, what)					\
	TRACEPOINT(tracepoint) int event_##name(__u64 *ctx)			\
	{									\
		struct bio *bio = ARG(ctx, args.name);				\
										\
		if (has_target_bio(bio))					\
			put_event(&events, of_bio(bio, what, 0), 0, 0);			\
		return 0;							\
	}

BIO_EVENT(getrq, "block_getrq", TA_GETRQ)
BIO_EVENT(backmerge, "block_bio_backmerge", TA_BACKMERGE)
BIO_EVENT(frontmerge, "block_bio_frontmerge", TA_FRONTMERGE)

#define REQUEST_EVENT(name, what)						\
	TRACEPOINT("block_" #name) int event_##name(__u64 *ctx)			\
	{									\
		struct request *rq = ARG(ctx, args.name);			\
										\
		return request_event(rq, what, GET(rq, __data_len), 0);		\
	}

REQUEST_EVENT(rq_insert, TA_INSERT)
REQUEST_EVENT(rq_issue, TA_ISSUE)
REQUEST_EVENT(rq_merge, TA_BACKMERGE)
REQUEST_EVENT(rq_requeue, TA_REQUEUE)

/* (rq, error, nr_bytes) in every kernel. */
TRACEPOINT("block_rq_complete")
int event_rq_complete(__u64 *ctx)
{
	struct request *rq = (void *)CTX(ctx, 0);
	__s32 error = CTX(ctx, 1);

	error = complete_has_errno ? -error : status_errno(error);
	return request_event(rq, TA_COMPLETE, CTX(ctx, 2), error);
}

/* Fires only for bios that did not complete through a request. (q, bio) in every kernel. */
TRACEPOINT("block_bio_complete")
int event_bio_complete(__u64 *ctx)
{
	struct bio *bio = (void *)CTX(ctx, 1);

	if (has_target_bio(bio))
		put_event(&events, of_bio(bio, TA_COMPLETE, status_errno(GET(bio, bi_status))), 0, 0);
	return 0;
}

TRACEPOINT("block_split")
int event_split(__u64 *ctx)
{
	struct bio *bio = ARG(ctx, args.split);
	__u64 pdu = __builtin_bswap64((__u32)ARG_AFTER(ctx, args.split, 1));

	if (has_target_bio(bio))
		put_event(&events, of_bio(bio, TA_SPLIT, status_errno(GET(bio, bi_status))), &pdu, 8);
	return 0;
}

TRACEPOINT("block_bio_remap")
int event_bio_remap(__u64 *ctx)
{
	struct bio *bio = ARG(ctx, args.remap);
	__u32 from = ARG_AFTER(ctx, args.remap, 1);
	__u64 sector = ARG_AFTER(ctx, args.remap, 2);
	__u64 pdu[2];

	if (!has_target_bio(bio))
		return 0;
	/* struct blk_io_trace_remap: big-endian device_from, device_to, sector_from */
	pdu[0] = __builtin_bswap32(from) | (__u64)__builtin_bswap32(bio_dev(bio)) << 32;
	pdu[1] = __builtin_bswap64(sector);
	put_event(&events, of_bio(bio, TA_REMAP, status_errno(GET(bio, bi_status))), pdu, 16);
	return 0;
}

static __always_inline bool is_target_queue(struct request_queue *q)
{
	if (bpf_core_field_exists(struct request_queue, disk))
		return has_target_disk(GET(q, disk));
	return (__u64)q == target_queue;
}

TRACEPOINT("block_plug")
int event_plug(__u64 *ctx)
{
	struct block_record e = { .action = TA_PLUG | categories(0), .time = bpf_ktime_get_ns() };

	if (is_target_queue((void *)CTX(ctx, 0)))
		put_event(&events, e, 0, 0);
	return 0;
}

TRACEPOINT("block_unplug")
int event_unplug(__u64 *ctx)
{
	struct block_record e = { .time = bpf_ktime_get_ns() };
	__u64 depth = __builtin_bswap64(CTX(ctx, 1));

	if (!is_target_queue((void *)CTX(ctx, 0)))
		return 0;
	e.action = (CTX(ctx, 2) ? TA_UNPLUG_IO : TA_UNPLUG_TIMER) | categories(0);
	put_event(&events, e, &depth, 8);
	return 0;
}
