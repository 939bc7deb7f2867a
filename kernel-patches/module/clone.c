// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bios that are made from others: the parts of a bio that was split, and the clones that dm makes.
 * The submitter queues a bio to dm's device; dm queues a clone of it to the disk below, at once or
 * later and from a worker.
 *
 * A clone is inside a structure that points to the original, and that no header declares. But the
 * original is remembered, so its address is recognised wherever it is found. Parts and clones use
 * the original's vector, and their position in it shows which part of the original they are.
 * dm-crypt's bios are separate ones, and point to such a clone.
 */
#include <linux/bio.h>
#include <linux/kernel.h>
#include "clone.h"
#include "compat.h"
#include "endio.h"

/* The beginning of struct dm_crypt_io of drivers/md/dm-crypt.c. */
struct crypt_io {
	void *cc;
	struct bio *base_bio;
};

/*
 * Returns true if the bio is dm's: the task that queues it may not be the one that submitted the
 * original.
 */
bool mostrace_is_clone(const struct bio *bio)
{
	enum mostrace_endio is = mostrace_endio_of(bio->bi_end_io);

	return is == MOSTRACE_ENDIO_DM || is == MOSTRACE_ENDIO_DM_CRYPT;
}

/* Returns the clone from which dm-crypt made a bio; NULL if it is not known. */
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

/* Returns the bio whose address is stored there, if that bio was queued and is remembered. */
static struct bio *bio_at(struct bio *const *at)
{
	const struct mostrace_submitter *who;
	struct bio *bio;

	if (!mostrace_peek(&bio, at) || !bio)
		return NULL;
	who = mostrace_recall(bio);
	return who && who->queued ? bio : NULL;
}

#define WORDS_MAX 32

/*
 * Returns the first such bio from `from` on. Its place is always the same; it is kept in `place`
 * and tried first.
 */
static struct bio *find_bio(struct bio *const *from, unsigned int *place)
{
	unsigned int i = READ_ONCE(*place);
	struct bio *bio = bio_at(from + i);

	for (i = 0; !bio && i < WORDS_MAX; i++) {
		bio = bio_at(from + i);
		if (bio)
			WRITE_ONCE(*place, i);
	}
	return bio;
}

#define TIO_WORDS 8

/*
 * Returns the bio from which a clone was made. The first clone is inside the structure that points
 * to that bio; further ones (a flush has one for each target) are inside structures that point to
 * this structure.
 */
static struct bio *original_of(const struct bio *clone)
{
	static unsigned int in_io, in_other_io, in_tio = 1;
	void *const *end = (void *const *)clone;
	struct bio *bio = find_bio((struct bio *const *)end - WORDS_MAX, &in_io);
	unsigned int i = READ_ONCE(in_tio);
	void *io;

	if (!bio && mostrace_peek(&io, end - i))
		bio = find_bio(io, &in_other_io);
	for (i = 1; !bio && i <= TIO_WORDS; i++) {
		if (!mostrace_peek(&io, end - i))
			return NULL;
		bio = find_bio(io, &in_other_io);
		if (bio)
			WRITE_ONCE(in_tio, i);
	}
	return bio;
}

#define BVECS_MAX 4096

/*
 * Returns the position of a bio's data in the file that is read or written directly. The bio was
 * made from another one, or is what is left of it; `who` describes that one as it was queued.
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
 * If a bio was made from one that is remembered, takes over that one's submitter and owner. Returns
 * false if it was not.
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
