/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The partitions that a device flush is for. The block layer makes one flush (REQ_OP_FLUSH, without a bio) for all
 * requests that wait for it, and keeps those in a list until it is done (block/blk-flush.c).
 */
#ifndef MOSTRACE_FLUSHQUEUE_BPF_H
#define MOSTRACE_FLUSHQUEUE_BPF_H

#include "compat.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct list_head {
	struct list_head *next;
};

struct blk_flush_queue {
	unsigned int flush_running_idx : 1;
	struct list_head flush_queue[2];
};

struct blk_mq_hw_ctx {
	struct blk_flush_queue *fq;
};

struct request___flush {
	struct blk_mq_hw_ctx *mq_hctx;
	struct bio *biotail;
	struct list_head queuelist;
};

/* Until 6.5 (81ada09cc25e) the list used a link of its own in a flush. */
struct request___flush_list {
	struct {
		struct list_head list;
	} flush;
};

#pragma clang attribute pop

#define FLUSHES_MAX 32

/*
 * Returns true if a device flush was made for a request of `dev`, and also if that cannot be found out: on 5.10, whose
 * bios do not name their partition, and for long lists.
 */
static __always_inline bool flush_serves(struct request *flush, __u32 dev)
{
	struct request___flush *rq = (void *)flush;
	struct blk_flush_queue *queue = BPF_CORE_READ(rq, mq_hctx, fq);
	struct list_head *head, *at;
	__u64 link, running;

	if (!queue || !bpf_core_field_exists(struct bio___bdev, bi_bdev))
		return true;
	running = BPF_CORE_READ_BITFIELD_PROBED(queue, flush_running_idx);
	head = (void *)queue + bpf_core_field_offset(struct blk_flush_queue, flush_queue);
	head = (void *)head + (running & 1) * bpf_core_type_size(struct list_head);
	link = bpf_core_field_exists(struct request___flush_list, flush.list) ?
		       bpf_core_field_offset(struct request___flush_list, flush.list) :
		       bpf_core_field_offset(struct request___flush, queuelist);
	at = BPF_CORE_READ(head, next);
	for (int i = 0; i < FLUSHES_MAX; i++) {
		if (!at || at == head)
			return false;
		rq = (void *)at - link;
		if (bio_dev(BPF_CORE_READ(rq, biotail)) == dev)
			return true;
		at = BPF_CORE_READ(at, next);
	}
	return true;
}

#endif
