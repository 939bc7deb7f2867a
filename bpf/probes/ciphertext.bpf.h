/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Encryption in the block layer that the kernel does itself (blk-crypto's fallback): it writes the ciphertext in a bio of its own,
 * whose pages belong to nobody. Up to 6.18 the plaintext's bio is queued, and then only the rest of a ciphertext that is split;
 * from 7.0 on every ciphertext is queued, and the plaintext's bio is not.
 */
#ifndef MOSTRACE_CIPHERTEXT_BPF_H
#define MOSTRACE_CIPHERTEXT_BPF_H

#include "pages.bpf.h"

static __always_inline bool is_ciphertext(const struct bio_view *v)
{
	return symbols.blk_crypto_fallback_encrypt_endio &&
	       v->end_io == symbols.blk_crypto_fallback_encrypt_endio;
}

/* BIO_MAX_VECS: more bvecs than this have no bio. */
#define BVECS_MAX 256

/* Moves the beginning of what the view has back in its bvecs. If they do not reach so far, the view has no pages any more. */
static __always_inline void step_back(struct bio_view *v, __u64 bytes)
{
	struct bio_vec *bvec;

#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < BVECS_MAX; i++) {
		if (bytes <= v->done || !v->idx)
			break;
		bytes -= v->done;
		v->idx--;
		bvec = first_bvec(v);
		v->done = BPF_CORE_READ(bvec, bv_len);
	}
	if (bytes <= v->done) {
		v->done -= bytes;
		return;
	}
	v->io_vec = 0;
	v->idx = v->done = 0;
}

/*
 * Replaces the view of a ciphertext by one of the same part of the plaintext's bio, with the number of the ciphertext's, which is
 * that of the request. The kernel of 7.0 moves the plaintext's own iterator behind what the ciphertext has. Not static, so that
 * the verifier walks it once.
 */
__noinline int uncover(__u32 slot)
{
	struct work *w = work_of(slot);
	struct bio_view *v;
	struct bio *cipher;
	__u64 sector;
	__u32 size;

	if (!w)
		return 0;
	v = &w->ascent.root;
	cipher = v->bio;
	sector = v->sector;
	size = v->size;
	view_bio(&w->ascent.window, v, v->private);
	if (sector >= v->sector)
		v->done += (sector - v->sector) << 9;
	else
		step_back(v, (v->sector - sector) << 9);
	v->bio = cipher;
	v->sector = sector;
	v->size = size;
	w->ascent.is_rest = v->idx || v->done;
	return 0;
}

#endif
