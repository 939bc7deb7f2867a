// SPDX-License-Identifier: GPL-2.0-only
/*
 * The probes: remember who submits a bio (block_bio_queue), make its entries
 * when its request is inserted or, where insertion was bypassed, issued, and
 * forget it when it completes.
 *
 * Raw tracepoints, because they exist from 4.17 on and need neither fentry nor
 * kprobes; which argument holds the bio or request is read from BTF by user
 * space.
 */
#include "owner.bpf.h"
#include "blockevents.bpf.h"
#include "flush.bpf.h"

char LICENSE[] SEC("license") = "GPL";

_Static_assert(sizeof(struct mostrace_entry) == 32, "entry");
_Static_assert(sizeof(struct mostrace_process) == 88, "process");
_Static_assert(sizeof(struct mostrace_file) == 72, "file");
_Static_assert(sizeof(struct mostrace_dirtier) == 72, "dirtier");

static __always_inline bool has_data(__u32 opf)
{
	__u32 op = opf & REQ_OP_MASK;

	return op == REQ_OP_READ || op == REQ_OP_WRITE ||
	       (op > REQ_OP_SECURE_ERASE && op != REQ_OP_WRITE_ZEROES);
}

static __always_inline void put_process(struct bio *bio, const struct submitter *s, __u32 stage,
					__u64 now, bool looped)
{
	struct mostrace_process p = {
		.head = entry_head(bio, now, stage),
		.submit_ns = s->time_ns,
		.home_sector = MOSTRACE_NONE,
		.pid = s->pid,
		.tgid = s->tgid,
		.uid = s->uid,
		.opf = BPF_CORE_READ(bio, bi_opf),
		.origin = MOSTRACE_ORIGIN_EMPTY,
	};

	p.head.flags = s->flags;
	__builtin_memcpy(p.comm, s->comm, sizeof(p.comm));
	/* An empty bio has no bvec to read. */
	if (p.head.bytes && has_data(p.opf))
		find_owner(bio, s, &p, looped);
	if (bpf_ringbuf_output(&entries, &p, sizeof(p), BPF_RB_NO_WAKEUP))
		lose(LOSS_ENTRIES_RING);
}

/* Makes the entries of a bio, once in its life. */
static __always_inline int record(struct bio *bio, __u32 stage, __u64 now, bool looped)
{
	struct submitter *s = recall(bio);
	struct bio *root;

	if (!s) {
		root = bio_root(bio);
		inherit((__u64)bio, root != bio ? (__u64)root : 0, MOSTRACE_CHAINED);
		s = recall(bio);
	}
	if (s && s->recorded)
		return 0;
	if (s)
		s->recorded = 1;
	/* Where the map is full, which is counted, an entry without submitter is better than none. */
	put_process(bio, s ? s : (const struct submitter *)&nobody, stage, now, looped);
	return 0;
}

/* Not static: see walk_pages. */
__noinline int record_bio(__u64 at, __u32 stage, __u64 now)
{
	return record((struct bio *)at, stage, now, true);
}

__noinline int record_bio_unrolled(__u64 at, __u32 stage, __u64 now)
{
	return record((struct bio *)at, stage, now, false);
}

struct bio_walk {
	struct bio *bio;
	__u64 now;
	__u32 left;	/* bytes still covered; for a completion */
	__u8 stage;
};

#define BIOS_MAX 4096
#define BIOS_MAX_UNROLLED 256

/*
 * Calls `step(i, ctx)` until it returns 1: with bpf_loop (5.17), or in a bounded loop, which the
 * verifier walks round by round. Not a test of BTF at load time: older kernels do not take the
 * address of a callback even in dead code, so there are two sets of programs, and user space
 * loads one.
 */
#define REPEAT(looped, step, ctx)						\
	do {									\
		if (looped)							\
			bpf_loop(BIOS_MAX, step, ctx, 0);			\
		else								\
			for (__u32 __i = 0; __i < BIOS_MAX_UNROLLED; __i++)	\
				if (step(__i, ctx))				\
					break;					\
	} while (0)

static __always_inline long step_record_by(struct bio_walk *w, bool looped)
{
	struct bio *bio = w->bio;

	if (!bio)
		return 1;
	if (looped)
		record_bio((__u64)bio, w->stage, w->now);
	else
		record_bio_unrolled((__u64)bio, w->stage, w->now);
	w->bio = BPF_CORE_READ(bio, bi_next);
	return 0;
}

static long step_record(__u32 i, void *ctx)
{
	return step_record_by(ctx, true);
}

static long step_record_unrolled(__u32 i, void *ctx)
{
	return step_record_by(ctx, false);
}

/* An empty flush ends; the end of a flush sequence with data, which is forgotten by now, is none. */
static __always_inline void end_flush(struct bio *bio, __u64 now, bool looped)
{
	if (!recall(bio))
		return;
	if (looped)
		record_bio((__u64)bio, MOSTRACE_COMPLETE, now);
	else
		record_bio_unrolled((__u64)bio, MOSTRACE_COMPLETE, now);
	flush_ended(bio);
}

static __always_inline long step_forget_by(struct bio_walk *w, bool looped)
{
	struct bio *bio = w->bio;
	__u32 size;

	if (!bio)
		return 1;
	size = BPF_CORE_READ(bio, bi_iter.bi_size);
	if (size > w->left)
		return 1;
	w->left -= size;
	if (!size)
		end_flush(bio, w->now, looped);
	forget(bio);
	w->bio = BPF_CORE_READ(bio, bi_next);
	return 0;
}

static long step_forget(__u32 i, void *ctx)
{
	return step_forget_by(ctx, true);
}

static long step_forget_unrolled(__u32 i, void *ctx)
{
	return step_forget_by(ctx, false);
}

static __always_inline int record_request(struct request *rq, __u8 stage, bool looped)
{
	struct bio_walk w = { .now = bpf_ktime_get_ns(), .stage = stage };

	if (!is_target_rq(rq))
		return 0;
	w.bio = BPF_CORE_READ(rq, bio);
	if (looped)
		REPEAT(true, step_record, &w);
	else
		REPEAT(false, step_record_unrolled, &w);
	if (w.bio)
		lose(LOSS_BIOS_CUT);
	return 0;
}

static __always_inline int queue_bio(struct bio *bio)
{
	__u64 now = bpf_ktime_get_ns();

	if (!is_target_bio(bio))
		return 0;
	remember_current((__u64)bio, now);
	if (!BPF_CORE_READ(bio, bi_iter.bi_size))
		flush_queued(bio);
	return 0;
}

static __always_inline int complete_request(struct request *rq, __u32 bytes, bool looped)
{
	struct bio_walk w = { .now = bpf_ktime_get_ns(), .left = bytes };

	if (!is_target_rq(rq))
		return 0;
	w.bio = BPF_CORE_READ(rq, bio);
	if (looped)
		REPEAT(true, step_forget, &w);
	else
		REPEAT(false, step_forget_unrolled, &w);
	return 0;
}

/* block_rq_complete is (rq, error, nr_bytes) in every kernel. */
#define PROGRAMS(suffix, looped)								\
	SEC("raw_tp/block_rq_insert") int mostrace_rq_insert##suffix(__u64 *ctx)		\
	{											\
		return record_request(ARG(ctx, args.rq_insert), MOSTRACE_INSERT, looped);	\
	}											\
	SEC("raw_tp/block_rq_issue") int mostrace_rq_issue##suffix(__u64 *ctx)			\
	{											\
		return record_request(ARG(ctx, args.rq_issue), MOSTRACE_ISSUE, looped);		\
	}											\
	SEC("raw_tp/block_rq_complete") int mostrace_rq_complete##suffix(__u64 *ctx)		\
	{											\
		return complete_request((struct request *)ctx[0], ctx[2], looped);		\
	}

PROGRAMS(, true)
PROGRAMS(_unrolled, false)

SEC("raw_tp/block_bio_queue")
int mostrace_bio_queue(__u64 *ctx)
{
	return queue_bio(ARG(ctx, args.bio_queue));
}

/*
 * The new bio is the front and its bi_private the original, which goes on as
 * the remainder and gets no second Q.
 */
SEC("raw_tp/block_split")
int mostrace_split(__u64 *ctx)
{
	struct bio *split = ARG(ctx, args.split);

	if (is_target_bio(split))
		inherit((__u64)split, (__u64)BPF_CORE_READ(split, bi_private), 0);
	return 0;
}

/* Fires only for bios that did not complete through a request. (q, bio) in every kernel. */
SEC("raw_tp/block_bio_complete")
int mostrace_bio_complete(__u64 *ctx)
{
	forget((struct bio *)ctx[1]);
	return 0;
}
