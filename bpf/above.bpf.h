/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From a bio of the traced disk up to the bio that a filesystem made: through the parts of a split bio, the
 * clones of device mapper, and dm-crypt's own bios.
 */
#ifndef MOSTRACE_ABOVE_BPF_H
#define MOSTRACE_ABOVE_BPF_H

#include "submitter.bpf.h"

struct ascent {
	struct window window;	/* what is looked at just now */
	struct bio_view root;	/* the bio that the filesystem made */
	struct direct direct;	/* of the traced bio */
	struct bio_view plain;	/* the bio whose pages hold what the filesystem wrote: dm-crypt's are ciphertext; see plain_of */
	__u64 sector;		/* of the root's device, that the traced bio begins at, or MOSTRACE_NONE */
	__u32 skip;		/* bytes of `plain` before the traced bio's */
	bool is_above;		/* the root is of another disk */
	bool has_plain;		/* `plain` is another bio than the root */
};

static __always_inline const struct bio_view *plain_of(const struct ascent *a)
{
	return a->has_plain ? &a->plain : &a->root;
}

/* Both types are in the BTF of dm's modules, which kernels before 5.11 do not give. */
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

/* A clone of device mapper's stands for a bio of the mapped device, whose sectors it had before. */
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

/* dm-crypt writes a bio of its own for each clone that it gets. */
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

/* Apart, so that the verifier of old kernels finds the loop in a form that it takes. */
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

/* `a->root` is the traced bio, and becomes what it comes from. */
static __always_inline void ascend(struct ascent *a)
{
	__u64 end_io = a->root.end_io;

	if (is_part(end_io) || is_clone(end_io) || is_encrypted(end_io))
		leave_all(a);
}

/*
 * Puts the submitter of the root, where it is another's bio, into the place of who queues now. Where it is
 * not known, a worker is not taken for it.
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
