/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who submitted a bio: remembered at block_bio_queue, which runs in the
 * submitting task, until the bio completes. Insert, issue and completion run
 * in any task.
 */
#ifndef MOSTRACE_SUBMITTER_BPF_H
#define MOSTRACE_SUBMITTER_BPF_H

#include "compat.bpf.h"
#include "mostrace.h"

struct submitter {
	__u64 time_ns;
	__u64 sector;		/* bi_sector at Q: splits move it */
	__u64 direct_pos;	/* file position of `sector` for direct IO, or MOSTRACE_NONE */
	__u32 pid;
	__u32 tgid;
	__u32 uid;
	__u8 flags;		/* enum mostrace_flags */
	__u8 recorded;		/* the entry was made: a later issue must not repeat it */
	__u8 pad[2];
	char comm[MOSTRACE_COMM_LEN];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 16);
	__type(key, __u64);
	__type(value, struct submitter);
} submitters SEC(".maps");

/* Counters of what was lost, read by user space; the names are the manifest's. */
enum loss {
	LOSS_ENTRIES_RING,
	LOSS_SUBMITTERS,
	LOSS_BIOS_CUT,
	LOSS_PAGES_CUT,
	LOSS_MAX,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LOSS_MAX);
	__type(key, __u32);
	__type(value, __u64);
} losses SEC(".maps");

static __always_inline void lose(__u32 what)
{
	__u64 *count = bpf_map_lookup_elem(&losses, &what);

	if (count)
		*count += 1;
}

static __always_inline void remember(struct bio *bio, const struct submitter *submitter)
{
	__u64 key = (__u64)bio;

	if (bpf_map_update_elem(&submitters, &key, submitter, BPF_ANY))
		lose(LOSS_SUBMITTERS);
}

static __always_inline void forget(struct bio *bio)
{
	__u64 key = (__u64)bio;

	bpf_map_delete_elem(&submitters, &key);
}

static __always_inline struct submitter *recall(struct bio *bio)
{
	__u64 key = (__u64)bio;

	return bpf_map_lookup_elem(&submitters, &key);
}

#define CHAIN_MAX 4

/* The bio that the filesystem made, above the splits: bi_private of a split part is its parent. */
static __always_inline struct bio *bio_root(struct bio *bio)
{
	for (int i = 0; i < CHAIN_MAX; i++) {
		if (!symbols.bio_chain_endio ||
		    (__u64)BPF_CORE_READ(bio, bi_end_io) != symbols.bio_chain_endio)
			break;
		bio = BPF_CORE_READ((bio), bi_private);
	}
	return bio;
}

/* f2fs of 7.x counts a bio's time in a context of its own, and keeps iomap's inside. */
static __always_inline bool is_f2fs_counted(struct bio *root)
{
	return bpf_core_type_exists(struct bio_iostat_ctx) && symbols.f2fs_dio_end_bio &&
	       (__u64)BPF_CORE_READ(root, bi_end_io) == symbols.f2fs_dio_end_bio;
}

static __always_inline bool is_file_direct(struct bio *root)
{
	return is_f2fs_counted(root) ||
	       (symbols.iomap_dio_bio_end_io &&
		(__u64)BPF_CORE_READ(root, bi_end_io) == symbols.iomap_dio_bio_end_io);
}

/* Of a bio that is_file_direct. */
static __always_inline struct iomap_dio *iomap_dio_of(struct bio *root)
{
	void *private = BPF_CORE_READ(root, bi_private);

	if (is_f2fs_counted(root))
		return (void *)BPF_CORE_READ((struct bio_iostat_ctx *)private, post_read_ctx);
	return private;
}

/*
 * Whether iomap adds a bio's bytes to dio->size only when it has submitted it, as 7.x does. No type
 * tells, but the first bio of every dio does: its own bytes are not yet in the sum.
 */
static bool size_lags;

/*
 * File position of a direct bio. ki_pos is moved only at the end of the whole dio; dio->size is the
 * bytes up to here, with this bio's own, except as above.
 */
static __always_inline __u64 direct_pos(struct bio *bio)
{
	struct iomap_dio *dio;
	__u64 done, bytes;

	if (!bpf_core_type_exists(struct iomap_dio) || !is_file_direct(bio))
		return MOSTRACE_NONE;
	dio = iomap_dio_of(bio);
	bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
	done = BPF_CORE_READ(dio, size);
	if (done < bytes)
		size_lags = true;
	return BPF_CORE_READ(dio, iocb, ki_pos) + done - (size_lags ? 0 : bytes);
}

/*
 * The functions below that put a struct submitter on the stack are not inlined and not static:
 * the verifier (until 6.8 or so) sums the stacks of a chain of calls, and the chain from a request
 * down to a page is long.
 */
__noinline int remember_current(__u64 at, __u64 now)
{
	struct bio *bio = (struct bio *)at;
	struct submitter s = {
		.time_ns = now,
		.sector = BPF_CORE_READ(bio, bi_iter.bi_sector),
		.direct_pos = direct_pos(bio),
	};
	__u64 id = bpf_get_current_pid_tgid();

	s.pid = id;
	s.tgid = id >> 32;
	s.uid = bpf_get_current_uid_gid();
	bpf_get_current_comm(s.comm, sizeof(s.comm));
	remember(bio, &s);
	return 0;
}

/* Stands for a bio whose Q was not seen. */
static const volatile struct submitter nobody = {
	.direct_pos = MOSTRACE_NONE,
	.flags = MOSTRACE_NO_SUBMITTER,
};

/* Gives a bio a record of its own: a copy of its parent's, or nobody's if `from` has none. */
__noinline int inherit(__u64 at, __u64 from, __u32 flags)
{
	struct submitter *parent = from ? recall((struct bio *)from) : 0;
	struct submitter s = { .direct_pos = MOSTRACE_NONE, .flags = MOSTRACE_NO_SUBMITTER };

	if (parent) {
		s = *parent;
		s.flags |= flags;
		/* The parent's own entry is not this bio's. */
		s.recorded = 0;
	}
	remember((struct bio *)at, &s);
	return 0;
}

#endif
