/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the bio that a filesystem made, starting from a bio of the traced disk: through the parts of a split bio,
 * device mapper's clones, and dm-crypt's own bios.
 */
#ifndef MOSTRACE_ABOVE_BPF_H
#define MOSTRACE_ABOVE_BPF_H

#include "submitter.bpf.h"

struct ascent {
	struct window window;	/* the kernel structure being read */
	struct bio_view root;	/* the bio that the filesystem made */
	struct direct direct;	/* the traced bio's direct IO */
	struct bio_view plain;	/* the bio whose pages hold what the filesystem wrote; see plain_of */
	__u64 sector;		/* sector of the root's device at which the traced bio begins, or MOSTRACE_NONE */
	__u32 skip;		/* bytes of `plain` ahead of the traced bio's */
	bool is_above;		/* the root belongs to another disk */
	bool has_plain;		/* `plain` is another bio than the root */
	bool is_rest;		/* the traced bio is ciphertext of what does not begin the root */
};

static __always_inline const struct bio_view *plain_of(const struct ascent *a)
{
	return a->has_plain ? &a->plain : &a->root;
}

/* Both types are in the BTF of dm's modules, which kernels before 5.11 do not provide. */
static __always_inline bool is_clone(__u64 end_io)
{
	return bpf_core_type_exists(struct dm_target_io) && symbols.clone_endio &&
	       end_io == symbols.clone_endio;
}

static __always_inline bool is_encrypted(__u64 end_io)
{
	return bpf_core_type_exists(struct dm_crypt_io) && symbols.crypt_endio &&
	       end_io == symbols.crypt_endio;
}

static __always_inline bool is_part(__u64 end_io)
{
	return symbols.bio_chain_endio && end_io == symbols.bio_chain_endio;
}

/* Goes from a device mapper's clone to its bio of the mapped device, with the sectors that it had there. */
static __noinline void leave_clone(struct ascent *a)
{
	struct dm_target_io *tio;

	tio = (void *)((char *)a->root.bio - bpf_core_field_offset(struct dm_target_io, clone));
	a->sector = MOSTRACE_NONE;
	if (bpf_core_field_exists(struct dm_target_io, old_sector))
		a->sector = BPF_CORE_READ(tio, old_sector);
	a->is_above = true;
	view_bio(&a->window, &a->root, BPF_CORE_READ(tio, io, orig_bio));
}

/* Goes from a bio of dm-crypt to the clone for which it was made; dm-crypt writes a bio of its own for each clone. */
static __noinline void leave_encrypted(struct ascent *a)
{
	struct dm_crypt_io *io = a->root.private;
	__u64 skip = a->sector - a->root.sector;

	view_bio(&a->window, &a->root, BPF_CORE_READ(io, base_bio));
	a->is_above = true;
	a->plain = a->root;
	a->skip = skip << 9;
	a->sector = a->root.sector + skip;
}

#define ASCENT_MAX 8

/* This is a function of its own so that the verifier of old kernels sees the loop in a form that it accepts. */
static __noinline void leave_all(struct ascent *a)
{
	a->plain = a->root;
	a->has_plain = true;
	for (int i = 0; i < ASCENT_MAX; i++) {
		if (is_part(a->root.end_io))
			view_bio(&a->window, &a->root, a->root.private);
		else if (is_clone(a->root.end_io))
			leave_clone(a);
		else if (is_encrypted(a->root.end_io))
			leave_encrypted(a);
		else
			break;
	}
}

/* Goes from the traced bio in `a->root` to the bio that it was made from. */
static __always_inline void ascend(struct ascent *a)
{
	__u64 end_io = a->root.end_io;

	if (is_part(end_io) || is_clone(end_io) || is_encrypted(end_io))
		leave_all(a);
}

/*
 * If the root is another bio, replaces the queueing task by the root's submitter. If that is not known, a worker is not
 * reported as the submitter.
 */
static __always_inline void submitter_above(struct submitter *s, struct ascent *a)
{
	struct submitter *first = recall(a->root.bio);

	if (first) {
		s->pid = first->pid;
		s->tgid = first->tgid;
		s->uid = first->uid;
		s->flags = first->flags | MOSTRACE_CHAINED;
		__builtin_memcpy(s->comm, first->comm, sizeof(s->comm));
		s->direct_pos = MOSTRACE_NONE;
		if (first->direct_pos != MOSTRACE_NONE && a->sector != MOSTRACE_NONE)
			s->direct_pos = first->direct_pos + ((a->sector - first->sector) << 9);
	} else {
		s->direct_pos = MOSTRACE_NONE;
		if (is_worker(s))
			set_unknown(s);
	}
}

#endif
