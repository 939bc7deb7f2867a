// SPDX-License-Identifier: GPL-2.0-only
/*
 * The probes for entries. The entries of a bio are made when it is queued: block_bio_queue runs in the submitting task,
 * once in a bio's life, before the bio is split or merged, and also on disks that have no requests. What the bio holds
 * is known by then.
 *
 * They are raw tracepoints (4.17) or BTF tracepoints (5.5), which need neither fentry nor kprobes. User space reads
 * from BTF which argument is the bio or request.
 */
#include "cgroup.bpf.h"
#include "ciphertext.bpf.h"
#include "comm.bpf.h"
#include "owner.bpf.h"
#include "flush.bpf.h"
#include "freed.bpf.h"
#include "like.bpf.h"
#include "requestevent.bpf.h"
#include "ring.bpf.h"
#include "target.bpf.h"
#include "zone.bpf.h"

char LICENSE[] SEC("license") = "GPL";

_Static_assert(sizeof(struct mostrace_entry) == 32, "entry");
_Static_assert(sizeof(struct mostrace_process) == 88, "process");
_Static_assert(sizeof(struct mostrace_file) == 72, "file");
_Static_assert(sizeof(struct mostrace_dirtier) == 72, "dirtier");
_Static_assert(sizeof(struct mostrace_freed) == 56, "freed");
_Static_assert(sizeof(struct mostrace_comm) == 56, "comm");

static __always_inline bool has_data(__u32 opf)
{
	__u32 op = opf & REQ_OP_MASK;

	return op == REQ_OP_READ || op == REQ_OP_WRITE ||
	       (op > REQ_OP_SECURE_ERASE && op != REQ_OP_WRITE_ZEROES);
}

/* Begins the process entry. It has no submitter before end_process. */
static __always_inline void start_process(struct work *w, const struct bio_view *v)
{
	struct mostrace_process *p = &w->process;

	p->head = (struct mostrace_entry){
		.type = MOSTRACE_PROCESS,
		.size = sizeof(struct mostrace_process),
		.dev = target.disk_dev,
		.time_ns = w->who.time_ns,
		.sector = v->sector,
		.bytes = v->size,
		.cpu = bpf_get_smp_processor_id(),
		.stage = MOSTRACE_QUEUE,
	};
	p->submit_ns = w->who.time_ns;
	p->home_sector = MOSTRACE_NONE;
	p->opf = v->opf;
	p->tid = 0;
	p->origin = MOSTRACE_ORIGIN_EMPTY;
	p->jbd2 = MOSTRACE_JBD2_NONE;
	p->home = MOSTRACE_HOME_DISK;
	p->contents = MOSTRACE_CONTENTS_UNKNOWN;
}

static __always_inline void end_process(struct work *w)
{
	struct mostrace_process *p = &w->process;

	p->head.flags = w->who.flags;
	p->pid = w->who.pid;
	p->tgid = w->who.tgid;
	p->uid = w->who.uid;
	__builtin_memcpy(p->comm, w->who.comm, sizeof(p->comm));
}

/* Makes the entries of `bio`, which is in `ascent.root`. Its sectors are those with which it begins above the disk. */
static __always_inline void record(struct work *w, struct bio *bio, __u32 slot, bool looped)
{
	w->used = 0;
	w->ascent.has_plain = false;
	w->ascent.skip = 0;
	start_process(w, &w->ascent.root);
	ascend(&w->ascent);
	if (w->ascent.is_above)
		submitter_above(&w->who, &w->ascent);
	/* An empty bio has no bvec to read. */
	if (w->process.head.bytes && has_data(w->process.opf))
		find_owner(w, slot, looped);
	end_process(w);
	/* Discards and zeroes have bytes. */
	if (!w->process.head.bytes) {
		w->process.opf = numbered(w->process.opf);
		if (keep_flush(w, bio)) {
			put_queued(w);
			return;
		}
	}
	w->queued.event.pattern = pattern_of(w);
	if (!put_all(w) && w->queued.event.pattern)
		keep_pattern(w, w->queued.event.pattern - 1);
}

/*
 * A filesystem on several disks writes a bio to another one than the traced. What it writes does not wait any more, and has
 * another dirtier when it is dirtied again.
 */
static __always_inline void settle(struct work *w, bool looped)
{
	w->who.time_ns = bpf_ktime_get_ns();
	w->buffer = 0;
	w->ascent.has_plain = false;
	w->ascent.skip = 0;
	start_process(w, &w->ascent.root);
	if (!w->process.head.bytes || (w->process.opf & REQ_OP_MASK) != REQ_OP_WRITE)
		return;
	w->walk.settles = true;
	if (looped)
		walk_pages(WORK_QUEUE);
	else
		walk_pages_unrolled(WORK_QUEUE);
	w->walk.settles = false;
}

/* The kinds of events that are reported as block events too. */
enum told { TOLD_QUEUED, TOLD_COMPLETED, TOLD };

/*
 * Whether each kind is reported: if the block events come from probes too, another program at the same tracepoint would
 * take longer than the addition to ours. User space sets them at any time.
 */
volatile __u32 told_events[TOLD] SEC(".data.told");

/* Makes the event of a queued bio. It is sent with the bio's entries. */
static READS_MUCH void tell_queued(struct work *w, __u32 pid)
{
	w->queued.event = (struct block_record){
		.type = MOSTRACE_BLOCK,
		.size = sizeof(w->queued),
		.pid = pid,
		.time = w->who.time_ns,
		.sector = w->ascent.root.sector,
		.bytes = w->ascent.root.size,
		.action = TA_QUEUE | categories(w->ascent.root.opf),
		.cpu = bpf_get_smp_processor_id(),
	};
	w->queued.bio = bio_number(w->ascent.root.bio);
	put_name(&shared_ring, w->who.time_ns, pid);
}

#ifndef MOSTRACE_UNTYPED
CGROUP_TELLER(&shared_ring, lose(LOSS_ENTRIES_RING))

/* Returns what current_cgroup_id returns. This is asked for every bio. */
static __always_inline __u64 asked_cgroup_id(void)
{
	return HAS_TYPES ? bpf_get_current_task_btf()->cgroups->dfl_cgrp->kn->id : bpf_get_current_cgroup_id();
}

/* Most bios bring nothing new, and need no call. */
static __always_inline void see_cgroup(__u64 now)
{
	if (has_cgroup_news(asked_cgroup_id(), now))
		tell_cgroup(now);
}
#else
static __always_inline void see_cgroup(__u64 now) {}
#endif

static __always_inline __u32 see(struct work *w, const struct bio_device *device)
{
	__u32 pid = see_submitter(&w->ascent.window, &w->who, &w->ascent.direct, &w->ascent.root, device);

	see_cgroup(w->who.time_ns);
	return pid;
}

/* Makes the event and the entries of a bio for the target that this thread queues. */
static __always_inline void tell_bio(struct work *w, struct bio *bio, const struct bio_device *device, bool looped)
{
	__u32 pid = see(w, device);

	/* iomap adds up what was submitted, not what was encrypted. */
	if (size_lags && w->ascent.is_rest)
		w->who.direct_pos = MOSTRACE_NONE;
	w->queued.event.size = 0;
	if (told_events[TOLD_QUEUED]) {
		if (put_like(w))
			return;
		tell_queued(w, pid);
	}
	w->who.flags |= mounting();
	w->ascent.sector = w->ascent.root.sector;
	w->ascent.is_above = false;
	record(w, bio, WORK_QUEUE, looped);
}

static __always_inline int queue_bio(struct bio *bio, bool looped)
{
	struct work *w = take_work(WORK_QUEUE);
	struct bio_device device;

	if (!w)
		return 0;
	view_argument(&w->ascent.window, &w->ascent.root, bio);
	w->ascent.is_rest = false;
	if (is_ciphertext(&w->ascent.root))
		uncover(WORK_QUEUE);
	find_device(&w->ascent.window, &device, &w->ascent.root);
	if (is_for_target(&device, &w->ascent.root)) {
		tell_bio(w, bio, &device, looped);
	} else if (has_disk(&above, device.disk)) {
		see(w, &device);
		w->who.flags |= mounting();
		remember(bio, &w->who);
	} else if (has_disk(&beside, device.disk)) {
		settle(w, looped);
	}
	leave_work(w);
	return 0;
}

/* BIO_TRACE_COMPLETION, which is in an enum without a name. */
const volatile __u32 trace_completion_bit;

/*
 * Returns true for a bio that was queued for a disk above and is passed on as it is (md, NVMe multipath). It is not
 * queued again; only block_bio_remap reports it. That fires once more when the bio is passed to a partition, with the
 * partition's own number, and only then does it have its sector on the disk.
 */
static __always_inline bool is_handed_on(struct bio *bio, const struct bio_device *d, __u32 from)
{
	return GET(bio, bi_flags) >> trace_completion_bit & 1 && (d->dev == target.disk_dev) != (from == d->dev);
}

/* Makes the entries of a bio that was handed on to the target. */
static __always_inline void tell_handed_on(struct work *w, struct bio *bio, const struct bio_device *device, bool looped)
{
	struct submitter *first;

	see(w, device);
	w->who.flags |= mounting();
	first = recall(bio);
	w->ascent.sector = first ? first->sector : MOSTRACE_NONE;
	w->ascent.is_above = true;
	record(w, bio, WORK_REMAP, looped);
	/* From here on it is the disk's, and may complete as a request, which block_bio_complete does not report. */
	forget(bio);
}

static __always_inline int remap_bio(struct bio *bio, __u32 from, bool looped)
{
	struct work *w = take_work(WORK_REMAP);
	struct bio_device device;

	if (!w)
		return 0;
	view_argument(&w->ascent.window, &w->ascent.root, bio);
	find_device(&w->ascent.window, &device, &w->ascent.root);
	if (is_handed_on(bio, &device, from) && is_for_target(&device, &w->ascent.root))
		tell_handed_on(w, bio, &device, looped);
	leave_work(w);
	return 0;
}

/*
 * Defines the programs with bpf_loop (5.17), and with a bounded loop, which the verifier walks round by round. This
 * cannot be a test of BTF at load time, because older kernels reject the address of a callback even in dead code; so
 * there are two sets of programs, and user space loads one.
 */
#define PROGRAMS(suffix, looped)								\
	TRACEPOINT("block_bio_queue") int mostrace_bio_queue##suffix(__u64 *ctx)		\
	{											\
		return queue_bio(ARG(ctx, args.bio_queue), looped);				\
	}											\
	TRACEPOINT("block_bio_remap") int mostrace_bio_remap##suffix(__u64 *ctx)		\
	{											\
		return remap_bio(ARG(ctx, args.remap), ARG_AFTER(ctx, args.remap, 1), looped);	\
	}

PROGRAMS(, true)
PROGRAMS(_unrolled, false)

/* (task, clone_flags) in every kernel. */
TRACEPOINT("task_newtask")
int mostrace_new_task(__u64 *ctx)
{
	struct task_struct *task = (void *)CTX(ctx, 0);

	return put_comm(&shared_ring, task, (char *)task + bpf_core_field_offset(struct task_struct, comm),
			MOSTRACE_COMM_STARTED);
}

/* (task, comm) in every kernel; the name is still the old one. */
TRACEPOINT("task_rename")
int mostrace_rename_task(__u64 *ctx)
{
	return put_comm(&shared_ring, (void *)CTX(ctx, 0), (char *)CTX(ctx, 1), MOSTRACE_COMM_CHANGED);
}

/* (iocb, bio, pos): of kernels with the patch. */
SEC("raw_tp/iomap_dio_submit_bio")
int mostrace_told_direct(__u64 *ctx)
{
	return tell_direct((struct kiocb *)ctx[0], (struct bio *)ctx[1], ctx[2]);
}

/* (folio, mapping): of kernels with the patch. */
SEC("raw_tp/writeback_start_folio")
int mostrace_told_writing(__u64 *ctx)
{
	return begin_writing(ctx[0], (struct address_space *)ctx[1]);
}

/*
 * A bio of a disk without requests, or of a disk above, has ended; its memory may be reused from here on. (q, bio) in
 * every kernel.
 */
SEC("raw_tp/block_bio_complete")
int mostrace_bio_complete(__u64 *ctx)
{
	struct bio *bio = (struct bio *)ctx[1];

	forget(bio);
	return end_flush(bio);
}

/* A flush's entry precedes its event. (rq, error, nr_bytes) in every kernel. */
TRACEPOINT("block_rq_complete")
int mostrace_rq_complete(__u64 *ctx)
{
	struct request *rq = (void *)CTX(ctx, 0);
	__u32 bytes = CTX(ctx, 2);
	struct bio *bio;

	if (!bytes) {
		bio = GET(rq, bio);
		if (bio)
			end_flush(bio);
	}
	if (told_events[TOLD_COMPLETED])
		put_completed(&shared_ring, rq, CTX(ctx, 1), bytes);
	return 0;
}
