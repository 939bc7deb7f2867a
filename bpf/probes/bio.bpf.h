/* SPDX-License-Identifier: GPL-2.0-only */
/* The fields of a bio that the probes use, and the device that the bio is for. */
#ifndef MOSTRACE_BIO_BPF_H
#define MOSTRACE_BIO_BPF_H

#include "target.bpf.h"
#include "tracepoint.bpf.h"

struct bio_view {
	struct bio *bio;
	void *device;		/* bi_bdev, or bi_disk (5.10) */
	__u64 end_io;
	void *private;
	struct bio_vec *io_vec;
	__u64 sector;
	__u32 size;
	__u32 idx;
	__u32 done;		/* bytes of io_vec[idx] that are done */
	__u32 opf;
};

/* READ(type, field) reads a field of the bio as one of its types. */
#define FILL_VIEW(v, READ)								\
	({										\
		if (bpf_core_field_exists(struct bio___bdev, bi_bdev))			\
			(v)->device = READ(struct bio___bdev, bi_bdev);			\
		else									\
			(v)->device = READ(struct bio___disk, bi_disk);			\
		(v)->end_io = (__u64)READ(struct bio, bi_end_io);			\
		(v)->private = READ(struct bio, bi_private);				\
		(v)->io_vec = READ(struct bio, bi_io_vec);				\
		(v)->sector = READ(struct bio, bi_iter.bi_sector);			\
		(v)->size = READ(struct bio, bi_iter.bi_size);				\
		(v)->idx = READ(struct bio, bi_iter.bi_idx);				\
		(v)->done = READ(struct bio, bi_iter.bi_bvec_done);			\
		(v)->opf = READ(struct bio, bi_opf);					\
	})

static __always_inline void view_bio(struct window *w, struct bio_view *v, struct bio *bio)
{
	OPEN(w, struct bio, bio);
	v->bio = bio;
#define READ(type, field) SEE(w, type, field)
	FILL_VIEW(v, READ);
#undef READ
}

/* Views the bio that is a tracepoint's argument. */
static __always_inline void view_argument(struct window *w, struct bio_view *v, struct bio *bio)
{
#ifdef MOSTRACE_UNTYPED
	view_bio(w, v, bio);
#else
	v->bio = bio;
#define READ(type, field) GET((type *)bio, field)
	FILL_VIEW(v, READ);
#undef READ
#endif
}

#define DISKS_MAX 8
struct disks {
	__u32 count;
	__u32 numbers[DISKS_MAX];	/* major << 20 | minor */
};

/* Disks that are mapped onto the traced one (dm, md), and disks above those. */
const volatile struct disks above;

/* The other disks of the filesystems that lie on the traced one and on several. */
const volatile struct disks beside;

static __always_inline bool has_disk(const volatile struct disks *disks, __u32 disk)
{
	for (__u32 i = 0; i < DISKS_MAX; i++)
		if (i < disks->count && disks->numbers[i] == disk)
			return true;
	return false;
}

struct bio_device {
	__u32 dev;	/* the disk or partition; 0: the bio does not have it (5.10) */
	__u32 disk;	/* the disk; 0: not looked up */
	__u64 start;	/* first sector on the disk */
};

static __always_inline __u32 disk_number(struct gendisk *disk)
{
	return disk ? LOAD(disk, major) << 20 | LOAD(disk, first_minor) : 0;
}

/*
 * Finds the device that a bio is for. Its disk is looked up only if the device's own number does not show whether the
 * bio is of interest.
 */
static __always_inline void find_device(struct window *w, struct bio_device *d, const struct bio_view *v)
{
	d->dev = 0;
	d->start = target_start;
	if (!bpf_core_field_exists(struct bio___bdev, bi_bdev)) {
		d->disk = disk_number(v->device);
		return;
	}
	OPEN(w, struct block_device, v->device);
	d->dev = SEE(w, struct block_device, bd_dev);
	d->start = SEE(w, struct block_device, bd_start_sect);
	if (d->dev == target.dev || d->dev == target.disk_dev)
		d->disk = target.disk_dev;
	else if (target.dev == target.disk_dev || above.count || beside.count)
		d->disk = disk_number(SEE(w, struct block_device, bd_disk));
	else
		d->disk = 0;
}

/* Returns true if the bio is for the traced disk or partition. */
static __always_inline bool is_for_target(const struct bio_device *d, const struct bio_view *v)
{
	if (d->disk != target.disk_dev)
		return false;
	if (v->size)
		return is_target_range(v->sector, v->size);
	/* A flush has no sectors: it is recognised by its device, if the bio has it. */
	return !d->dev || target.dev == target.disk_dev || d->dev == target.dev;
}

#endif
