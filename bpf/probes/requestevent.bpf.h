/* SPDX-License-Identifier: GPL-2.0-only */
/* Block events of requests. */
#ifndef MOSTRACE_REQUESTEVENT_BPF_H
#define MOSTRACE_REQUESTEVENT_BPF_H

#include "blockevents.bpf.h"
#include "flushqueue.bpf.h"
#include "target.bpf.h"
#include "tracepoint.bpf.h"

/* True if the end of a request has a negative errno (5.10); in later kernels it has a blk_status_t. */
const volatile bool complete_has_errno;

/* The target's queue, taken from its first request: on 5.10 a queue does not name its disk. */
static __u64 target_queue;

static __always_inline bool is_whole_disk(void)
{
	return target.dev == target.disk_dev;
}

/* Returns true for the target's disk, and for its paths, which have the same sectors. */
static __always_inline bool has_target_disk(struct gendisk *disk)
{
	__u32 number;

	if (!disk)
		return false;
	number = GET(disk, major) << 20 | GET(disk, first_minor);
	return number == target.disk_dev || is_path_disk(number);
}

/* Returns true if the request of a bio that names `dev` may be the target's. A path's bio does not name the partition. */
static __always_inline bool may_be_target_dev(__u32 dev)
{
	return !dev || dev == target.dev || is_path_disk(dev);
}

static __always_inline bool is_passthrough(__u32 opf)
{
	return (opf & REQ_OP_MASK) >= REQ_OP_SCSI_IN;
}

/*
 * Returns true if a request belongs to the partition. A request without bytes is a flush that was asked for, whose bio
 * has the device, or the device's own flush for those that wait for it. A passthrough command has no sectors and
 * belongs to the disk.
 */
static __always_inline bool has_target_sectors(struct request *rq, __u32 opf)
{
	__u32 bytes = GET(rq, __data_len);
	__u64 sector = GET(rq, __sector);
	struct bio *bio = GET(rq, bio);

	if (is_passthrough(opf))
		return false;
	if (bytes)
		return sector < target.end && sector + ((bytes + 511) >> 9) > target.start;
	if (!bio)
		return target.path_count || flush_serves(rq, target.dev);
	return may_be_target_dev(bio_dev(bio));
}

/*
 * Puts an event of a passthrough command, which has no sector. Its payload is the command, for those that read blktrace's files. This
 * is a function of its own, because clang would merge its call of put_event with the other, and the verifier requires the size of a
 * record to be a constant.
 */
static __noinline void put_passthrough(void *ring, __u32 opf, __u32 what, __u32 bytes, __u16 error)
{
	struct block_record e = {
		.time = bpf_ktime_get_ns(),
		.pid = current_pid(),
		.bytes = bytes,
		.action = what | categories(opf) | TC(BLK_TC_PC),
		.error = error,
	};

	put_event(ring, e, 0, 0);
}

/* Puts an event of a request. As in blk_rq_trace_sector, a flush has no sector. */
static __always_inline void put_request_event(void *ring, struct request *rq, __u32 what, __u32 bytes, __u16 error)
{
	struct gendisk *disk;
	__u64 sector;
	__u64 bio;
	__u32 opf;

	if (bpf_core_field_exists(struct request___rq_disk, rq_disk))
		disk = GET((struct request___rq_disk *)rq, rq_disk);
	else
		disk = GET(rq, q, disk);
	if (!has_target_disk(disk))
		return;
	opf = GET(rq, cmd_flags);
	if (!is_whole_disk() && !has_target_sectors(rq, opf))
		return;
	if (!bpf_core_field_exists(struct request_queue, disk))
		target_queue = (__u64)GET(rq, q);
	if (is_passthrough(opf)) {
		put_passthrough(ring, opf, what, bytes, error);
		return;
	}
	sector = GET(rq, __sector);
	bio = bio_number(GET(rq, bio));
	put_event(ring, (struct block_record){
		.time = bpf_ktime_get_ns(),
		.pid = current_pid(),
		.sector = sector == ~0ULL ? 0 : sector,
		.bytes = bytes,
		.action = what | categories(opf) | TC(BLK_TC_FS),
		.error = error,
	}, &bio, sizeof(bio));
}

/* Puts the event of block_rq_complete. */
static __always_inline void put_completed(void *ring, struct request *rq, __s32 error, __u32 bytes)
{
	error = complete_has_errno ? -error : status_errno(error);
	put_request_event(ring, rq, TA_COMPLETE, bytes, error);
}

#endif
