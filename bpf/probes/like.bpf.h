/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bios of direct IO that are like an earlier one: the same task reads or writes the same file, which has the same name. Their event
 * and entries differ from the earlier ones only in time, sector, length and offset. A record of these alone is put, with the number
 * of a pattern; user space has the pattern from the record of the earlier bio.
 *
 * Each CPU has its own patterns, which only mostrace_bio_queue touches. No two runs of it are in progress on a CPU (take_work), and it
 * cannot move to another one, so the records with a CPU's number are in the ring in the order in which the patterns were kept and used.
 * If the ring had no room for a record, it becomes no pattern, and the pattern before stays, here and in user space.
 */
#ifndef MOSTRACE_LIKE_BPF_H
#define MOSTRACE_LIKE_BPF_H

#include "direct.bpf.h"

/* The record of a bio that is like an earlier one. */
struct like_record {
	__u16 type;		/* MOSTRACE_LIKE */
	__u16 size;
	__u16 pattern;		/* its number on this CPU, from 1 on */
	__u16 cpu;
	__u64 time;
	__u64 sector;
	__u64 bytes;
	__u64 offset;		/* in the file, or MOSTRACE_NONE */
	__u64 bio;		/* bio_number */
};

_Static_assert(sizeof(struct like_record) == 48, "like_record");

/* What the event and the entries of a bio were made of, but for what differs between bios. */
struct pattern {
	struct inode *inode;	/* NULL: there is none */
	void *device;		/* of the bio */
	__u64 ino;
	__u32 generation;
	__u32 nlink;
	__u32 opf;
	__u32 pid;
	__u32 tgid;
	__u32 uid;
	__u32 flags;
	__u64 comm[2];
	__u32 depth;
	struct seen_name seen[DEPTH_MAX];
};

/* The number of patterns of each CPU, a power of 2. */
#define PATTERNS 64

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PATTERNS);
	__type(key, __u32);
	__type(value, struct pattern);
} patterns SEC(".maps");

/* Returns the place of the current bio's pattern. Inodes have some 1,000 bytes. */
static __always_inline __u32 pattern_place(const struct work *w)
{
	__u64 inode = (__u64)w->ascent.direct.inode;

	return (inode >> 10 ^ w->who.pid ^ w->ascent.root.opf) & (PATTERNS - 1);
}

/* Returns true if the current bio is of a file under direct IO whose pattern may be kept, or used. */
static __always_inline bool may_be_like(const struct work *w)
{
	return w->ascent.direct.file && w->ascent.root.size && is_iomap(&w->ascent.root);
}

static __always_inline bool has_task_of(const struct pattern *p, const struct submitter *s)
{
	const __u64 *comm = (const __u64 *)s->comm;

	return p->pid == s->pid && p->tgid == s->tgid && p->uid == s->uid && p->flags == s->flags &&
	       p->comm[0] == comm[0] && p->comm[1] == comm[1];
}

/*
 * Returns true if the inode has not changed: its memory may have been reused, and links may have been made or removed. Of the same
 * device, an inode with this number and generation is the same file.
 */
static __always_inline bool has_file_of(const struct pattern *p, struct window *w, struct inode *inode)
{
	OPEN(w, struct inode, inode);
	return p->nlink == SEE(w, struct inode, i_nlink) && p->generation == SEE(w, struct inode, i_generation) &&
	       p->ino == inode_ino(inode);
}

/* Returns true if the pattern has the file's path, and the path is unchanged. */
static __always_inline bool has_path_of(const struct pattern *p, struct dentry *dentry)
{
	if (p->seen[0].dentry != dentry)
		return false;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < DEPTH_MAX; i++) {
		if (i >= p->depth)
			break;
		if (!is_as_seen(&p->seen[i]))
			return false;
	}
	return true;
}

static __always_inline bool is_like(const struct pattern *p, struct work *w)
{
	const struct direct *direct = &w->ascent.direct;

	return p->inode == direct->inode && p->device == w->ascent.root.device && p->opf == w->ascent.root.opf &&
	       has_task_of(p, &w->who) && has_file_of(p, &w->inode, direct->inode) && has_path_of(p, direct->dentry);
}

/* Puts a record of what differs, if the current bio is like an earlier one. Returns false if it is not. */
static __noinline bool put_like(struct work *w)
{
	struct like_record *r;
	struct pattern *p;
	__u32 place;

	if (!may_be_like(w))
		return false;
	place = pattern_place(w);
	p = bpf_map_lookup_elem(&patterns, &place);
	if (!p || !is_like(p, w))
		return false;
	r = bpf_ringbuf_reserve(&shared_ring, sizeof(*r), 0);
	if (!r) {
		lose_event();
		lose(LOSS_ENTRIES_RING);
		return true;
	}
	r->type = MOSTRACE_LIKE;
	r->size = sizeof(*r);
	r->pattern = place + 1;
	r->cpu = bpf_get_smp_processor_id();
	r->time = w->who.time_ns;
	r->sector = w->ascent.root.sector;
	r->bytes = w->ascent.root.size;
	r->offset = w->who.direct_pos;
	r->bio = bio_number(w->ascent.root.bio);
	bpf_ringbuf_submit(r, wake_flags(&shared_ring, w->who.time_ns));
	return true;
}

/*
 * Returns true if the submitter is the task that queues the bio, and is in no call that mounts: what is like this needs not be asked
 * for that. Where direct IO is a mount's own, it reads an image.
 */
static __always_inline bool is_own(const struct work *w)
{
	return w->queued.event.pid == w->who.pid && !(w->who.flags & (MOSTRACE_MOUNTS | MOSTRACE_UNMOUNTS));
}

/* Returns the number under which user space is to keep the current bio's record as a pattern; 0 if it is not to. */
static __always_inline __u32 pattern_of(const struct work *w)
{
	const struct path_name *path = &w->paths[w->path & (PATHS - 1)];
	const struct mostrace_file *f = (const struct mostrace_file *)w->out;

	if (!w->queued.event.size || !may_be_like(w) || !is_own(w) || w->ascent.is_above || w->ascent.has_plain ||
	    w->process.origin != MOSTRACE_ORIGIN_DIRECT || path->inode != w->run.inode || path->ino != w->ino ||
	    w->used != f->head.size)
		return 0;
	return pattern_place(w) + 1;
}

/* Keeps what the record that was just put was made of. */
static __noinline void keep_pattern(const struct work *w, __u32 place)
{
	const struct path_name *path = &w->paths[w->path & (PATHS - 1)];
	const struct mostrace_file *f = (const struct mostrace_file *)w->out;
	struct pattern *p = bpf_map_lookup_elem(&patterns, &place);

	if (!p)
		return;
	p->inode = w->run.inode;
	p->ino = f->ino;
	p->generation = f->generation;
	p->device = w->ascent.root.device;
	p->nlink = f->nlink;
	p->opf = w->process.opf;
	p->pid = w->who.pid;
	p->tgid = w->who.tgid;
	p->uid = w->who.uid;
	p->flags = w->who.flags;
	p->comm[0] = ((const __u64 *)w->who.comm)[0];
	p->comm[1] = ((const __u64 *)w->who.comm)[1];
	p->depth = path->depth;
	bpf_probe_read_kernel(p->seen, sizeof(p->seen), path->seen);
}

#endif
