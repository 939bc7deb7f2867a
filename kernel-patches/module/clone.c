// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bios that are made of others: the parts of a bio that was split, and the clones that
 * dm makes. A bio is queued to dm's device by who submits it; dm queues a clone of it to
 * the disk below, at once or later and from a worker.
 *
 * A clone lies in a struct that points to the original, and that no header has: but
 * the original is remembered, so that its address is known where it is met. Parts and clones
 * share the original's vector, and their place there says what of it they are.
 * dm-crypt's bios are others again, and point to such a clone.
 */
#include <linux/bio.h>
#include <linux/kernel.h>
#include "clone.h"
#include "compat.h"
#include "endio.h"

/* What struct dm_crypt_io of drivers/md/dm-crypt.c begins with. */
struct crypt_io {
	void *cc;
	struct bio *base_bio;
};

/* Whether it is dm's: who queues it need not be who submitted the original. */
bool mostrace_is_clone(const struct bio *bio)
{
	enum mostrace_endio is = mostrace_endio_of(bio->bi_end_io);

	return is == MOSTRACE_ENDIO_DM || is == MOSTRACE_ENDIO_DM_CRYPT;
}

/* The clone that dm-crypt made a bio of; NULL if that is not known. */
static struct bio *plain_of(const struct bio *bio)
{
	struct crypt_io io;
	bio_end_io_t *end_io;

	if (!mostrace_peek(&io, (struct crypt_io *)bio->bi_private) ||
	    !mostrace_peek(&end_io, &io.base_bio->bi_end_io) ||
	    mostrace_endio_of(end_io) != MOSTRACE_ENDIO_DM ||
	    io.base_bio->bi_iter.bi_size != bio->bi_iter.bi_size)
		return NULL;
	return io.base_bio;
}

/* What is so many words before a clone, if it is the address of a bio that was queued. */
static struct bio *original_at(const struct bio *clone, unsigned int words)
{
	const struct mostrace_submitter *who;
	struct bio *bio;

	if (!mostrace_peek(&bio, (struct bio **)clone - words) || !bio)
		return NULL;
	who = mostrace_recall(bio);
	return who && who->queued ? bio : NULL;
}

#define WORDS_MAX 32

static struct bio *original_of(const struct bio *clone)
{
	/* Where it was found last: it is the same in all of a kernel. */
	static unsigned int place = 1;
	unsigned int words = READ_ONCE(place);
	struct bio *original = original_at(clone, words);

	for (words = 1; !original && words <= WORDS_MAX; words++) {
		original = original_at(clone, words);
		if (original)
			WRITE_ONCE(place, words);
	}
	return original;
}

#define BVECS_MAX 4096

/*
 * Where the data of what is made of a bio, or left of it, lies in the file that is read or written
 * directly; `who` is of the bio as it was queued.
 */
u64 mostrace_position(const struct mostrace_submitter *who, const struct bio *bio)
{
	const struct bio_vec *at = who->bvec, *end = &bio->bi_io_vec[bio->bi_iter.bi_idx];
	u64 pos = who->direct_pos;

	if (pos == MOSTRACE_NONE || !at || at < bio->bi_io_vec || at > end || end - at > BVECS_MAX)
		return MOSTRACE_NONE;
	for (; at < end; at++)
		pos += at->bv_len;
	return pos + bio->bi_iter.bi_bvec_done - who->bvec_done;
}

/*
 * Of a bio that is made of one that is remembered: the submitter of that, and what its data belongs
 * to. False if it is of none.
 */
bool mostrace_inherit(struct mostrace_submitter *who, struct bio *bio)
{
	struct bio *plain = NULL, *original;
	const struct mostrace_submitter *its;

	switch (mostrace_endio_of(bio->bi_end_io)) {
	case MOSTRACE_ENDIO_CHAIN:
		original = bio->bi_private;
		break;
	case MOSTRACE_ENDIO_DM:
		original = original_of(bio);
		break;
	case MOSTRACE_ENDIO_DM_CRYPT:
		plain = plain_of(bio);
		original = plain ? original_of(plain) : NULL;
		break;
	default:
		return false;
	}
	its = original ? mostrace_recall(original) : NULL;
	if (!its || !its->queued)
		return false;
	*who = *its;
	who->flags |= MOSTRACE_CHAINED;
	who->direct_pos = mostrace_position(its, plain ?: bio);
	if (plain)
		who->plain = plain;
	return true;
}
