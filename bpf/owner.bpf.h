/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a bio's pages belong to: a file of the page cache, a file under direct
 * IO, the block device's own pages (a filesystem's metadata), or a jbd2 block.
 */
#ifndef MOSTRACE_OWNER_BPF_H
#define MOSTRACE_OWNER_BPF_H

#include "submitter.bpf.h"
#include "target.bpf.h"

#define JBD2_MAGIC 0xc03b3998U

struct jbd2_header {
	__be32 h_magic;
	__be32 h_blocktype;
	__be32 h_sequence;
};

/* The file entry as reserved in the ring; user space cuts it to its name. */
union file_record {
	struct mostrace_file file;
	char bytes[sizeof(struct mostrace_file) + MOSTRACE_NAME_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} entries SEC(".maps");

/* The head of every entry of a bio. */
static __always_inline struct mostrace_entry entry_head(struct bio *bio, __u64 now, __u32 stage)
{
	return (struct mostrace_entry){
		.type = MOSTRACE_PROCESS,
		.size = sizeof(struct mostrace_process),
		.dev = target.disk_dev,
		.time_ns = now,
		.sector = BPF_CORE_READ(bio, bi_iter.bi_sector),
		.bytes = BPF_CORE_READ(bio, bi_iter.bi_size),
		.cpu = bpf_get_smp_processor_id(),
		.stage = stage,
	};
}

/* The inode behind a page of the page cache, or NULL if it is not one. */
static __always_inline struct inode *page_inode(struct page *head)
{
	struct address_space *mapping = page_mapping(head);
	struct inode *host;

	/* Low bits mark anonymous and movable pages; tails and slabs hold other things. */
	if (!mapping || ((__u64)mapping & 7))
		return 0;
	host = BPF_CORE_READ(mapping, host);
	if (!host || ((__u64)host & 7))
		return 0;
	if (BPF_CORE_READ(host, i_mapping) != mapping &&
	    (__u64)host + bpf_core_field_offset(struct inode, i_data) != (__u64)mapping)
		return 0;
	return host;
}

static __always_inline bool is_bdev(struct inode *inode)
{
	return (BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFBLK;
}

/* A run of a bio that holds consecutive bytes of one file. */
struct run {
	struct inode *inode;
	struct dentry *dentry;	/* the name used to open it; NULL: any of the inode's */
	__u64 offset;
	__u64 sector;
	__u32 bytes;
	__u8 origin;
};

static __always_inline void name_file(union file_record *r, struct dentry *dentry)
{
	struct dentry *parent = BPF_CORE_READ(dentry, d_parent);
	__u32 len = BPF_CORE_READ(dentry, d_name.len);

	if (len >= MOSTRACE_NAME_MAX) {
		len = MOSTRACE_NAME_MAX - 1;
		r->file.head.flags |= MOSTRACE_NAME_CUT;
	}
	len &= MOSTRACE_NAME_MAX - 1;
	if (bpf_probe_read_kernel(r->bytes + sizeof(r->file), len, BPF_CORE_READ(dentry, d_name.name)))
		return;
	r->file.name_len = len;
	/* A root is its own parent. */
	if (parent && parent != dentry)
		r->file.parent = inode_ino(BPF_CORE_READ(parent, d_inode));
}

/*
 * Makes a file entry. Not static, so that the verifier walks it once; such a function takes at
 * most five scalars, so the small ones come packed: bytes, origin << 32, stage << 40.
 */
__noinline int put_file(__u64 inode_at, __u64 dentry_at, __u64 offset, __u64 sector, __u64 packed)
{
	union file_record *r = bpf_ringbuf_reserve(&entries, sizeof(*r), 0);
	struct inode *inode = (struct inode *)inode_at;
	struct dentry *dentry = (struct dentry *)dentry_at;

	if (!r) {
		lose(LOSS_ENTRIES_RING);
		return 0;
	}
	__builtin_memset(&r->file, 0, sizeof(r->file));
	r->file.head.type = MOSTRACE_FILE;
	r->file.head.dev = target.disk_dev;
	r->file.head.time_ns = bpf_ktime_get_ns();
	r->file.head.sector = sector;
	r->file.head.bytes = packed;
	r->file.head.cpu = bpf_get_smp_processor_id();
	r->file.head.stage = packed >> 40;
	r->file.origin = packed >> 32;
	r->file.ino = inode_ino(inode);
	r->file.offset = offset;
	r->file.generation = BPF_CORE_READ(inode, i_generation);
	r->file.s_dev = BPF_CORE_READ(inode, i_sb, s_dev);
	r->file.nlink = BPF_CORE_READ(inode, i_nlink);
	if (!r->file.nlink)
		r->file.head.flags |= MOSTRACE_UNLINKED;
	else if (r->file.nlink > 1)
		r->file.head.flags |= MOSTRACE_HARDLINKED;
	if (!dentry)
		dentry = inode_dentry(inode);
	if (dentry)
		name_file(r, dentry);
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline void put_run(const struct run *run, __u8 stage)
{
	put_file((__u64)run->inode, (__u64)run->dentry, run->offset, run->sector,
		 run->bytes | (__u64)run->origin << 32 | (__u64)stage << 40);
}

/* Walks a bio's pages; a bvec may span pages of different owners. */
struct page_walk {
	struct bio_vec *bvec;
	__u32 done;		/* bytes of *bvec already walked */
	__u32 left;		/* bytes of the bio still to walk */
	__u64 sector;
	struct run run;
	__u8 stage;
};

static __always_inline void close_run(struct page_walk *w)
{
	if (w->run.bytes)
		put_run(&w->run, w->stage);
	w->run.bytes = 0;
}

/*
 * Always 0, which the verifier cannot know: adding it takes away the bounds of a loop's counters,
 * so that the states of two rounds are alike and it stops walking the loop.
 */
static volatile __u32 zero;

static long step_page(__u32 i, void *ctx)
{
	struct page_walk *w = ctx;
	struct bio_vec *bvec = w->bvec;
	__u64 page_size = 1ULL << page_shift;
	__u32 len, at, chunk;
	struct page *page, *head;
	struct inode *inode;
	__u64 offset;

	if (!w->left)
		return 1;
	len = BPF_CORE_READ(bvec, bv_len);
	if (w->done >= len) {
		bvec = (struct bio_vec *)((char *)bvec + bpf_core_type_size(struct bio_vec));
		w->bvec = bvec;
		w->done = 0;
		len = BPF_CORE_READ(bvec, bv_len);
	}
	at = BPF_CORE_READ(bvec, bv_offset) + w->done;
	page = (struct page *)((char *)BPF_CORE_READ(bvec, bv_page) +
			       (__u64)(at >> page_shift) * bpf_core_type_size(struct page));
	at &= page_size - 1;
	chunk = page_size - at;
	if (chunk > len - w->done)
		chunk = len - w->done;
	if (chunk > w->left)
		chunk = w->left;
	if (!chunk)
		return 1;

	head = page_head(page);
	inode = page_inode(head);
	offset = (page_index(page, head) << page_shift) + at;
	if (w->run.bytes && (w->run.inode != inode || w->run.offset + w->run.bytes != offset))
		close_run(w);
	if (inode && !is_bdev(inode)) {
		if (!w->run.bytes) {
			w->run.inode = inode;
			w->run.offset = offset;
			w->run.sector = w->sector;
		}
		w->run.bytes += chunk + zero;
	}
	w->done += chunk + zero;
	w->left -= chunk + zero;
	w->sector += chunk >> 9;
	return 0;
}

/* The bvec that bi_iter stands at. */
static __always_inline struct bio_vec *bio_first_bvec(struct bio *bio)
{
	return (struct bio_vec *)((char *)BPF_CORE_READ(bio, bi_io_vec) +
		(__u64)BPF_CORE_READ(bio, bi_iter.bi_idx) * bpf_core_type_size(struct bio_vec));
}

static __always_inline struct page *bio_first_page(struct bio *bio)
{
	struct bio_vec *bvec = bio_first_bvec(bio);
	__u64 at = BPF_CORE_READ(bvec, bv_offset) + BPF_CORE_READ(bio, bi_iter.bi_bvec_done);

	return (struct page *)((char *)BPF_CORE_READ(bvec, bv_page) +
			       (at >> page_shift) * bpf_core_type_size(struct page));
}

#define PAGES_MAX 8192
#define PAGES_MAX_UNROLLED 1024

static __always_inline void start_walk(struct page_walk *w, struct bio *bio, __u32 stage)
{
	*w = (struct page_walk){
		.bvec = bio_first_bvec(bio),
		.done = BPF_CORE_READ(bio, bi_iter.bi_bvec_done),
		.left = BPF_CORE_READ(bio, bi_iter.bi_size),
		.sector = BPF_CORE_READ(bio, bi_iter.bi_sector),
		.run.origin = MOSTRACE_ORIGIN_FILE,
		.stage = stage,
	};
}

/* Closes the walk; returns the origin of the first page. */
static __always_inline int end_walk(struct page_walk *w, struct bio *bio)
{
	struct inode *first = page_inode(page_head(bio_first_page(bio)));

	close_run(w);
	if (w->left)
		lose(LOSS_PAGES_CUT);
	if (!first)
		return MOSTRACE_ORIGIN_UNKNOWN;
	return is_bdev(first) ? MOSTRACE_ORIGIN_BDEV : MOSTRACE_ORIGIN_FILE;
}

/*
 * Makes the file entries of a page-cache bio; returns the origin of its first page. Not static,
 * so that the verifier walks it once and not anew for every way that leads here; on 5.10 such a
 * function takes only scalars.
 */
__noinline int walk_pages(__u64 at, __u32 stage)
{
	struct bio *bio = (struct bio *)at;
	struct page_walk w;

	start_walk(&w, bio, stage);
	bpf_loop(PAGES_MAX, step_page, &w, 0);
	return end_walk(&w, bio);
}

/*
 * Without bpf_loop: a round is a function of its own, which the verifier walks once. It finds the
 * walk in a map; kernels before 5.17 do not preempt a probe.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct page_walk);
} walk_scratch SEC(".maps");

static __always_inline struct page_walk *scratch(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&walk_scratch, &key);
}

__noinline int step_scratch(__u32 i)
{
	struct page_walk *w = scratch();

	return w ? step_page(i, w) : 1;
}

__noinline int walk_pages_unrolled(__u64 at, __u32 stage)
{
	struct bio *bio = (struct bio *)at;
	struct page_walk *w = scratch();

	if (!w)
		return MOSTRACE_ORIGIN_UNKNOWN;
	start_walk(w, bio, stage);
	for (__u32 i = 0; i < PAGES_MAX_UNROLLED; i++)
		if (step_scratch(i))
			break;
	return end_walk(w, bio);
}

static __always_inline __u8 direct_owner(struct bio *bio, struct bio *root,
					 const struct submitter *s, const struct mostrace_entry *like)
{
	struct iomap_dio *dio = BPF_CORE_READ(root, bi_private);
	struct file *file = BPF_CORE_READ(dio, iocb, ki_filp);
	struct run run = {
		.inode = BPF_CORE_READ(file, f_inode),
		.dentry = BPF_CORE_READ(file, f_path.dentry),
		.offset = MOSTRACE_NONE,
		.sector = like->sector,
		.bytes = like->bytes,
		.origin = MOSTRACE_ORIGIN_DIRECT,
	};

	if (!run.inode)
		return MOSTRACE_ORIGIN_UNKNOWN;
	if (is_bdev(run.inode))
		return MOSTRACE_ORIGIN_RAW;
	if (s && s->direct_pos != MOSTRACE_NONE)
		run.offset = s->direct_pos + ((like->sector - s->sector) << 9);
	put_run(&run, like->stage);
	return MOSTRACE_ORIGIN_DIRECT;
}

/* A process's memory as the buffer of direct IO: anonymous, or a file of another device. */
static __always_inline bool is_users_memory(struct bio *bio)
{
	struct page *head = page_head(bio_first_page(bio));
	struct inode *inode = page_inode(head);

	if (!inode)
		return page_mapping(head) != 0;
	return !is_bdev(inode) && bio_dev(bio) && BPF_CORE_READ(inode, i_sb, s_dev) != bio_dev(bio);
}

/* Direct IO of a block device; its short, synchronous form goes through submit_bio_wait. */
static __always_inline bool is_raw_direct(struct bio *bio, struct bio *root)
{
	__u64 end_io = (__u64)BPF_CORE_READ(root, bi_end_io);

	if (!end_io)
		return false;
	if (end_io == symbols.blkdev_bio_end_io || end_io == symbols.blkdev_bio_end_io_simple ||
	    end_io == symbols.blkdev_bio_end_io_async)
		return true;
	return (end_io == symbols.submit_bio_wait_endio || end_io == symbols.bio_wait_end_io) &&
	       is_users_memory(bio);
}

/* The buffer_head of a single-buffer bio (submit_bh), or NULL. */
static __always_inline struct buffer_head *bio_buffer(struct bio *bio, __u64 part_start)
{
	struct buffer_head *bh = BPF_CORE_READ(bio, bi_private);
	__u64 size;

	if (!bh || ((__u64)bh & 7))
		return 0;
	size = BPF_CORE_READ(bh, b_size);
	if (size != BPF_CORE_READ(bio, bi_iter.bi_size))
		return 0;
	if (BPF_CORE_READ(bh, b_blocknr) * (size >> 9) + part_start !=
	    BPF_CORE_READ(bio, bi_iter.bi_sector))
		return 0;
	return bh;
}

/*
 * A journalled copy: jbd2 makes a buffer_head of its own, that stands alone
 * and whose b_private is the home buffer, also for frozen and escaped copies.
 */
static __always_inline bool journal_copy(struct buffer_head *bh, struct mostrace_process *p,
					 __u64 part_start)
{
	struct buffer_head *home = BPF_CORE_READ(bh, b_private);
	struct journal_head *jh;
	struct page *page, *head;
	struct inode *inode;

	if (!home || ((__u64)home & 7) || BPF_CORE_READ(bh, b_this_page))
		return false;
	jh = BPF_CORE_READ(home, b_private);
	if (!jh || BPF_CORE_READ(jh, b_bh) != home)
		return false;
	p->home_sector = BPF_CORE_READ(home, b_blocknr) * (BPF_CORE_READ(home, b_size) >> 9) + part_start;
	if (bpf_core_type_exists(struct transaction_s))
		p->tid = BPF_CORE_READ(jh, b_transaction, t_tid);
	p->jbd2 = MOSTRACE_JBD2_METADATA_COPY;
	page = BPF_CORE_READ(home, b_page);
	head = page_head(page);
	inode = page_inode(head);
	if (inode && !is_bdev(inode)) {
		struct run run = {
			.inode = inode,
			.offset = (page_index(page, head) << page_shift) +
				  ((__u64)BPF_CORE_READ(home, b_data) & ((1ULL << page_shift) - 1)),
			.sector = p->head.sector,
			.bytes = p->head.bytes,
			.origin = MOSTRACE_ORIGIN_JOURNAL,
		};
		p->jbd2 = MOSTRACE_JBD2_DATA_COPY;
		put_run(&run, p->head.stage);
	}
	return true;
}

/* Descriptor, commit, revoke and superblock blocks say what they are. */
static __always_inline bool journal_header(struct bio *bio, struct buffer_head *bh,
					   struct mostrace_process *p)
{
	struct jbd2_header h = {};
	__u32 type;

	if (bpf_probe_read_kernel(&h, sizeof(h), BPF_CORE_READ(bh, b_data)) ||
	    h.h_magic != __builtin_bswap32(JBD2_MAGIC))
		return false;
	type = __builtin_bswap32(h.h_blocktype);
	if (type < MOSTRACE_JBD2_DESCRIPTOR || type > MOSTRACE_JBD2_REVOKE)
		return false;
	/*
	 * A directory's or symlink's block may begin with the same bytes. Descriptors and commit
	 * records end in the commit's own code; superblocks and revoke blocks are written like any
	 * other buffer: that they lie in the journal is for the analyser to check.
	 */
	if ((type == MOSTRACE_JBD2_DESCRIPTOR || type == MOSTRACE_JBD2_COMMIT) && !ends_in_jbd2(bio, bh))
		return false;
	if (type != MOSTRACE_JBD2_SUPERBLOCK && type != MOSTRACE_JBD2_SUPERBLOCK_V1)
		p->tid = __builtin_bswap32(h.h_sequence);
	p->jbd2 = type;
	return true;
}

/* Fills in what the process entry says of the owner, and makes the file entries. */
static __always_inline void find_owner(struct bio *bio, const struct submitter *s,
				       struct mostrace_process *p, bool looped)
{
	struct bio *root = bio_root(bio);
	__u64 part_start = bio_part_start(bio);
	struct buffer_head *bh;

	if (bpf_core_type_exists(struct iomap_dio) && is_file_direct(root)) {
		p->origin = direct_owner(bio, root, s, &p->head);
		return;
	}
	if (is_raw_direct(bio, root)) {
		p->origin = MOSTRACE_ORIGIN_RAW;
		return;
	}
	bh = bio_buffer(bio, part_start);
	if (bh && (journal_copy(bh, p, part_start) || journal_header(bio, bh, p))) {
		p->origin = MOSTRACE_ORIGIN_JOURNAL;
		return;
	}
	p->origin = looped ? walk_pages((__u64)bio, p->head.stage) :
			     walk_pages_unrolled((__u64)bio, p->head.stage);
}

#endif
