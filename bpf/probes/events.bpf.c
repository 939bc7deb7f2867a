// SPDX-License-Identifier: GPL-2.0-only
/*
 * The probes for block events.
 *
 * The events of a life cycle (Q, X, I, D, R, C) are always recorded, blktrace's others on request.
 */
#include "requestevent.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* If the probes for entries run too, user space lets this be their ring. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} shared_ring SEC(".maps");

static __always_inline bool has_target_bio(struct bio *bio)
{
	__u32 bytes;
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
	/* A flush has no sectors: it is recognised by its device, if the bio has it. */
	return may_be_target_dev(bio_dev(bio));
}

static __always_inline struct block_record of_bio(struct bio *bio, __u32 what, __u16 error)
{
	struct block_record e = {
		.time = bpf_ktime_get_ns(),
		.sector = GET(bio, bi_iter.bi_sector),
		.bytes = GET(bio, bi_iter.bi_size),
		.action = what | categories(GET(bio, bi_opf)),
		.pid = current_pid(),
		.error = error,
	};

	return e;
}

#define REQUEST_EVENT(name, what)						\
	TRACEPOINT("block_" #name) int event_##name(__u64 *ctx)			\
	{									\
		struct request *rq = ARG(ctx, args.name);			\
										\
		put_request_event(&shared_ring, rq, what, GET(rq, __data_len), 0);	\
		return 0;							\
	}

/*
 * Programs are attached in the order in which they are here. The ends of requests come first, so that each request whose issue is seen
 * has its end, and issues come last, so that few have no queueing.
 */

/* This is not loaded if the probes for entries report these events. (rq, error, nr_bytes) in every kernel. */
TRACEPOINT("block_rq_complete")
int event_rq_complete(__u64 *ctx)
{
	put_completed(&shared_ring, (void *)CTX(ctx, 0), CTX(ctx, 1), CTX(ctx, 2));
	return 0;
}

REQUEST_EVENT(rq_requeue, TA_REQUEUE)

/* This is not loaded if the probes for entries report these events. */
TRACEPOINT("block_bio_queue")
int event_bio_queue(__u64 *ctx)
{
	struct bio *bio = ARG(ctx, args.bio_queue);
	struct block_record e;
	__u64 number;

	if (!has_target_bio(bio))
		return 0;
	e = of_bio(bio, TA_QUEUE, 0);
	number = bio_number(bio);
	put_name(&shared_ring, e.time, e.pid);
	put_event(&shared_ring, e, &number, sizeof(number));
	return 0;
}

#define BIO_EVENT(name, tracepoint, what)					\
	TRACEPOINT(tracepoint) int event_##name(__u64 *ctx)			\
	{									\
		struct bio *bio = ARG(ctx, args.name);				\
										\
		if (has_target_bio(bio))					\
			put_event(&shared_ring, of_bio(bio, what, 0), 0, 0);			\
		return 0;							\
	}

BIO_EVENT(getrq, "block_getrq", TA_GETRQ)
BIO_EVENT(backmerge, "block_bio_backmerge", TA_BACKMERGE)
BIO_EVENT(frontmerge, "block_bio_frontmerge", TA_FRONTMERGE)

REQUEST_EVENT(rq_insert, TA_INSERT)
REQUEST_EVENT(rq_merge, TA_BACKMERGE)
REQUEST_EVENT(rq_issue, TA_ISSUE)

/* True if the disk completes requests. */
const volatile bool has_requests;

/*
 * Returns true for a bio that the kernel has encrypted itself (blk-crypto's fallback): what is written is a bio of its own, whose
 * request has just completed, and has been reported. Disks that encrypt complete the bio itself.
 */
static __always_inline bool is_plaintext(struct bio *bio)
{
	struct bio___crypt *encrypted = (void *)bio;

	return has_requests && bpf_core_field_exists(encrypted->bi_crypt_context) &&
	       BPF_CORE_READ(encrypted, bi_crypt_context);
}

/* This fires only for bios that did not complete through a request. (q, bio) in every kernel. */
TRACEPOINT("block_bio_complete")
int event_bio_complete(__u64 *ctx)
{
	struct bio *bio = (void *)CTX(ctx, 1);
	__u64 number = bio_number(bio);

	if (has_target_bio(bio) && !is_plaintext(bio))
		put_event(&shared_ring, of_bio(bio, TA_COMPLETE, status_errno(GET(bio, bi_status))), &number, 8);
	return 0;
}

/* The bio is the front, a new one that is chained to the bio that was queued, which is now the rest (bio_chain). */
TRACEPOINT("block_split")
int event_split(__u64 *ctx)
{
	struct bio *bio = ARG(ctx, args.split);
	__u64 pdu[3];

	if (!has_target_bio(bio))
		return 0;
	pdu[0] = __builtin_bswap64((__u32)ARG_AFTER(ctx, args.split, 1));
	pdu[1] = bio_number(bio);
	pdu[2] = bio_number(GET(bio, bi_private));
	put_event(&shared_ring, of_bio(bio, TA_SPLIT, status_errno(GET(bio, bi_status))), pdu, sizeof(pdu));
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
	put_event(&shared_ring, of_bio(bio, TA_REMAP, status_errno(GET(bio, bi_status))), pdu, 16);
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
	struct block_record e = {
		.action = TA_PLUG | categories(0),
		.time = bpf_ktime_get_ns(),
		.pid = current_pid(),
	};

	if (is_target_queue((void *)CTX(ctx, 0)))
		put_event(&shared_ring, e, 0, 0);
	return 0;
}

TRACEPOINT("block_unplug")
int event_unplug(__u64 *ctx)
{
	struct block_record e = { .time = bpf_ktime_get_ns(), .pid = current_pid() };
	__u64 depth = __builtin_bswap64(CTX(ctx, 1));

	if (!is_target_queue((void *)CTX(ctx, 0)))
		return 0;
	e.action = (CTX(ctx, 2) ? TA_UNPLUG_IO : TA_UNPLUG_TIMER) | categories(0);
	put_event(&shared_ring, e, &depth, 8);
	return 0;
}
