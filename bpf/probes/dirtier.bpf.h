/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The dirtier of a page of the page cache, or of a block in a device's page that several blocks share: the task that
 * made it dirty after it was clean. It is remembered until the page is written or leaves the cache. A task that writes
 * to the page while it is dirty is not its dirtier, nor is a task that should write it out, could not write all of it,
 * and marked it dirty again.
 *
 * A page may be dirtied again while it is being written. What a bio writes was dirtied before the bio was queued. A
 * page that two tasks dirtied before its entries were made has two dirtiers, and then neither is reported.
 *
 * With patch 0002 of kernel-patches/series the kernel reports when the write of a file's folio
 * begins (writeback_start_folio): what dirtied it until then is being written, and what dirties it from then on is not. The entry
 * then moves from one table to another, and both dirtiers are known.
 */
#ifndef MOSTRACE_DIRTIER_BPF_H
#define MOSTRACE_DIRTIER_BPF_H

#include "checkpoint.bpf.h"
#include "file.bpf.h"
#include "filesystems.bpf.h"
#include "mounting.bpf.h"

/*
 * The place that was made dirty: a folio, identified by its head page, or a buffer if several blocks of a device share a page
 * (FAT's blocks are sectors). Its memory may have been reused since.
 */
struct dirty_place {
	__u64 key;
	__u64 mapping;		/* for a buffer its device */
	__u64 index;		/* for a buffer its block */
	bool is_buffer;
	bool is_dirty;		/* already, before the task made it so */
};

struct dirty_page {
	__u64 mapping;
	__u64 index;
	__u64 dirty_ns;
	__u64 taken_ns;		/* when an entry of a bio was last made from it, or 0 */
	__u32 pid;
	__u32 tgid;
	__u32 uid;
	__u16 doubt;		/* another task dirtied it too */
	__u16 flags;		/* flags of its entry: MOSTRACE_COLLECTS, MOSTRACE_MAPPED, MOSTRACE_MOUNTS, _UNMOUNTS */
	char comm[MOSTRACE_COMM_LEN];
};

/*
 * The page that was used longest ago is forgotten; its dirtier is then not known. User space finds the number of those
 * by dirt_counts.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 17);
	__type(key, __u64);
	__type(value, struct dirty_page);
} dirty_pages SEC(".maps");

/* True if the kernel reports when the write of a folio begins. */
const volatile bool tells_writing;

/* The dirtiers of the files' folios that are being written, or were written last. User space makes it smaller otherwise. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 15);
	__type(key, __u64);
	__type(value, struct dirty_page);
} writing_pages SEC(".maps");

/*
 * What was remembered, and what of it was taken by a bio or dropped ahead of that. The difference is the number of
 * entries that wait for their bio; those that are not in the table were forgotten, which the kernel does not report.
 */
enum dirt_count {
	DIRT_REMEMBERED,
	DIRT_SETTLED,
	DIRT_MAX,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DIRT_MAX);
	__type(key, __u32);
	__type(value, __u64);
} dirt_counts SEC(".maps");

static __always_inline void count_dirt(__u32 what)
{
	__u64 *count = bpf_map_lookup_elem(&dirt_counts, &what);

	if (count)
		__sync_fetch_and_add(count, 1);
}

/* Returns true if no bio has written the page since it was dirtied. */
static __always_inline bool waits(const struct dirty_page *page)
{
	return page->taken_ns < page->dirty_ns;
}

static __always_inline void forget_dirt(__u64 key, const struct dirty_page *page)
{
	bool waited = waits(page);

	if (!bpf_map_delete_elem(&dirty_pages, &key) && waited)
		count_dirt(DIRT_SETTLED);
}

/* <uapi/asm-generic/errno-base.h> */
#define EEXIST 17

static __always_inline void remember_dirt(__u64 key, const struct dirty_page *page)
{
	long error = bpf_map_update_elem(&dirty_pages, &key, page, BPF_NOEXIST);

	if (!error)
		count_dirt(DIRT_REMEMBERED);
	/* Another task may have dirtied a buffer at the same moment. */
	else if (error != -EEXIST)
		lose(LOSS_DIRTIERS);
}

/* Returns the disk that an inode's pages are written to. */
static __always_inline struct gendisk *inode_disk(struct inode *inode)
{
	struct block_device *bdev = 0;

	if (!is_bdev(inode))
		bdev = LOAD(inode, i_sb, s_bdev);
	else if (bpf_core_type_exists(struct bdev_inode))
		bdev = (void *)((char *)inode - bpf_core_field_offset(struct bdev_inode, vfs_inode));
	return bdev ? LOAD(bdev, bd_disk) : 0;
}

static __always_inline bool is_kthread(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	return LOAD(task, flags) & PF_KTHREAD;
}

/* The inode that a task is syncing. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 12);
	__type(key, __u64);
	__type(value, __u64);
} syncing SEC(".maps");

/* Returns true if the current task is a flusher. If symbols are hidden, any worker may be one. */
static __noinline bool is_flusher(void)
{
	__u64 work = current_work();

	return work && (!symbols.wb_workfn || work == symbols.wb_workfn);
}

/* "jbd2/", with which the comm of every journal thread begins. */
#define JBD2_COMM 0x2f3264626aULL
#define JBD2_COMM_MASK 0xffffffffffULL

/* Returns true for a journal thread; a kernel thread's name is the one that the kernel gave it. */
static __noinline bool is_jbd2(void)
{
	char comm[MOSTRACE_COMM_LEN] __attribute__((aligned(8))) = { };

	if (!is_kthread())
		return false;
	current_comm(comm);
	return (*(__u64 *)comm & JBD2_COMM_MASK) == JBD2_COMM;
}

/* Work that a task does for f2fs. */
enum f2fs_work {
	F2FS_COLLECTS = 1,	/* collects garbage */
	F2FS_PREPARES = 2,	/* prepares a checkpoint: updates the nodes of inodes that others changed */
};

/* The tasks that do such work. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 10);
	__type(key, __u64);
	__type(value, __u32);
} f2fs_workers SEC(".maps");

/* True if a task ever did such work; otherwise nothing is looked up, as on other filesystems. */
static bool f2fs_works;

static __always_inline __u32 f2fs_work(void)
{
	__u64 task = bpf_get_current_pid_tgid();
	__u32 *work = f2fs_works ? bpf_map_lookup_elem(&f2fs_workers, &task) : 0;

	return work ? *work : 0;
}

static __always_inline int set_f2fs_work(__u32 clear, __u32 set)
{
	__u64 task = bpf_get_current_pid_tgid();
	__u32 work = (f2fs_work() & ~clear) | set;

	f2fs_works = true;
	if (work)
		bpf_map_update_elem(&f2fs_workers, &task, &work, BPF_ANY);
	else
		bpf_map_delete_elem(&f2fs_workers, &task);
	return 0;
}

SEC("raw_tp/f2fs_gc_begin")
int mostrace_f2fs_gc_begin(__u64 *ctx)
{
	return set_f2fs_work(0, F2FS_COLLECTS);
}

SEC("raw_tp/f2fs_gc_end")
int mostrace_f2fs_gc_end(__u64 *ctx)
{
	return set_f2fs_work(F2FS_COLLECTS, 0);
}

/* (sb, reason, phase) */
SEC("raw_tp/f2fs_write_checkpoint")
int mostrace_f2fs_write_checkpoint(__u64 *ctx)
{
	return checkpoint_phase(ctx[2]) == CP_PHASE_START_BLOCK_OPS ?
	       set_f2fs_work(0, F2FS_PREPARES) : set_f2fs_work(F2FS_PREPARES, 0);
}

/* On f2fs an fsync makes nodes dirty for its own sake, so this is for ext4 alone. */
static __always_inline bool is_syncing_ext4(struct inode *inode)
{
	__u64 task = bpf_get_current_pid_tgid();

	return bpf_map_lookup_elem(&syncing, &task) &&
	       LOAD(inode, i_sb, s_magic) == EXT4_SUPER_MAGIC;
}

/*
 * Returns true if the current task writes the inode's pages for others, like an fsync that makes a fast commit: pages
 * that it cannot write, or only in part (if some of several blocks have no place yet), it makes dirty again. Metadata
 * is made dirty only by jbd2, and on f2fs by the task that prepares a checkpoint.
 */
static __always_inline bool is_writeback(struct inode *inode)
{
	return is_flusher() || f2fs_work() & F2FS_PREPARES || (!is_bdev(inode) && (is_jbd2() || is_syncing_ext4(inode)));
}

/*
 * Handles a page that is made dirty again. Writeback does so for a page that it cannot write, without having changed
 * the data. Another task may have changed it, or may be in an fsync: that is not known.
 */
static __always_inline void dirty_again(struct dirty_page *known, __u32 pid)
{
	if (known->pid != pid && !is_kthread())
		known->doubt = 1;
}

/*
 * Returns true if an inode's filesystem is on the traced disk: by its disk, or by its own number, as btrfs does not report
 * a disk, and f2fs and ext4 may have others beside the one that they report.
 */
static __noinline bool is_traced_inode(struct inode *inode)
{
	struct gendisk *disk = inode_disk(inode);
	__u32 number = disk_number(disk);

	if (disk && (number == target.disk_dev || has_disk(&above, number)))
		return true;
	return is_traced_filesystem(LOAD(inode, i_sb, s_dev));
}

/* Returns true if the current task makes the inode's pages on the traced disk dirty for its own sake. */
static __always_inline bool is_dirtier(struct inode *inode)
{
	if (!inode || !(__u32)bpf_get_current_pid_tgid())
		return false;
	return is_traced_inode(inode) && !is_writeback(inode);
}

/* Records that the current task makes something of the inode's dirty. */
static __always_inline void put_dirt(const struct dirty_place *place, struct inode *inode)
{
	__u64 key = place->key, id = bpf_get_current_pid_tgid();
	struct dirty_page *known, page = { .mapping = place->mapping, .index = place->index };

	known = bpf_map_lookup_elem(&dirty_pages, &key);
	if (known && known->mapping == page.mapping && known->index == page.index &&
	    waits(known)) {
		if (!place->is_dirty)
			dirty_again(known, id);
		return;
	}
	if (place->is_dirty) {
		/* It was not seen who dirtied it first: that was before the recording, or the kernel skipped this program. */
		if (known)
			forget_dirt(key, known);
		return;
	}
	page.dirty_ns = bpf_ktime_get_ns();
	page.pid = id;
	page.tgid = id >> 32;
	page.uid = current_uid();
	page.flags = (f2fs_work() & F2FS_COLLECTS ? MOSTRACE_COLLECTS : 0) |
		     (is_mapped_writable(inode) ? MOSTRACE_MAPPED : 0) | mounting();
	current_comm(page.comm);
	if (known)
		forget_dirt(key, known);
	remember_dirt(key, &page);
}

static __always_inline int dirty_folio(__u64 head, struct address_space *mapping)
{
	struct dirty_place place = { .key = head, .mapping = (__u64)mapping };
	struct inode *inode = LOAD(mapping, host);

	if (!is_dirtier(inode))
		return 0;
	place.index = folio_index(head);
	put_dirt(&place, inode);
	return 0;
}

/* Finds a buffer in a device's own page that it shares with other buffers. */
static __always_inline bool find_buffer(struct dirty_place *place, struct buffer_head *bh)
{
	if (!bh || LOAD(bh, b_size) >> page_shift)
		return false;
	place->key = (__u64)bh;
	place->mapping = (__u64)PEEK(bh, b_bdev);
	place->index = LOAD(bh, b_blocknr);
	place->is_buffer = true;
	return true;
}

/* (bh): called whether or not the buffer was dirty before. */
SEC("raw_tp/block_dirty_buffer")
int mostrace_dirty_buffer(__u64 *ctx)
{
	struct buffer_head *bh = (struct buffer_head *)ctx[0];
	struct dirty_place place;
	struct folio_view folio;
	struct inode *inode;

	if (!find_buffer(&place, bh))
		return 0;
	place.is_dirty = LOAD(bh, b_state) >> bpf_core_enum_value(enum bh_state_bits, BH_Dirty) & 1;
	view_folio(&folio, (__u64)PEEK(bh, b_page));
	inode = mapping_inode(folio.mapping);
	if (inode && is_bdev(inode) && is_dirtier(inode))
		put_dirt(&place, inode);
	return 0;
}

/* (folio, mapping); before 5.18 (page, mapping). User space loads the program that the kernel supports. */
SEC("raw_tp/writeback_dirty_folio")
int mostrace_dirty_folio(__u64 *ctx)
{
	return dirty_folio(ctx[0], (struct address_space *)ctx[1]);
}

SEC("raw_tp/writeback_dirty_page")
int mostrace_dirty_page(__u64 *ctx)
{
	return dirty_folio(page_head(ctx[0]), (struct address_space *)ctx[1]);
}

/*
 * The write of a folio begins. A part that could not be written the time before is written now, and has the dirtier that it
 * had. The buffers of a device's own folio may also be written one by one, which begins no write of the folio.
 */
static __always_inline int begin_writing(__u64 head, struct address_space *mapping)
{
	struct dirty_page *page = bpf_map_lookup_elem(&dirty_pages, &head);

	if (!page || page->mapping != (__u64)mapping || is_bdev(LOAD(mapping, host)))
		return 0;
	bpf_map_update_elem(&writing_pages, &head, page, BPF_ANY);
	forget_dirt(head, page);
	return 0;
}

/* Returns what is known of the dirtier of what is being written. */
static __always_inline struct dirty_page *dirt_of(__u64 key, bool has_begun)
{
	if (has_begun)
		return bpf_map_lookup_elem(&writing_pages, &key);
	return bpf_map_lookup_elem(&dirty_pages, &key);
}

static __always_inline int drop_dirt(__u64 key)
{
	struct dirty_page *page = bpf_map_lookup_elem(&dirty_pages, &key);

	if (page)
		forget_dirt(key, page);
	return 0;
}

/*
 * (folio, offset, length): ext4 drops a part of a folio that is not written. What it has written needs no such event, so
 * pages that leave the cache of this or another filesystem pay nothing. Once its beginning is gone, a folio has no
 * dirtier, whether or not the rest of it is dropped too.
 */
SEC("raw_tp/ext4_invalidate_folio")
int mostrace_ext4_invalidate(__u64 *ctx)
{
	return ctx[1] ? 0 : drop_dirt(ctx[0]);
}

SEC("raw_tp/ext4_journalled_invalidate_folio")
int mostrace_ext4_journalled_invalidate(__u64 *ctx)
{
	return ctx[1] ? 0 : drop_dirt(ctx[0]);
}

/* Returns the inode of a folio, or before 5.16 of a page, that is in the page cache. */
static __always_inline struct inode *cached_inode(__u64 head)
{
	if (bpf_core_type_exists(struct folio))
		return LOAD((struct folio *)head, mapping, host);
	return BPF_CORE_READ((struct page___plain *)head, mapping, host);
}

/*
 * (folio); before 5.16 (page). A page that leaves the page cache was written or dropped, and its memory is reused. This is
 * for filesystems other than ext4; all pages of the machine pass it.
 */
SEC("raw_tp/mm_filemap_delete_from_page_cache")
int mostrace_drop_folio(__u64 *ctx)
{
	struct inode *inode = cached_inode(ctx[0]);

	return inode && is_traced_inode(inode) ? drop_dirt(ctx[0]) : 0;
}

/* Makes the dirtier entry of a run that ends at sector `end`. */
static __always_inline void put_dirtier(struct work *w, const struct dirty_run *run, __u64 end)
{
	struct dirty_page *page = dirt_of(run->key, run->has_begun);
	struct mostrace_dirtier *d;

	/* The page was forgotten or dirtied by another task since. */
	if (!page || page->pid != run->pid) {
		lose(LOSS_DIRTIERS);
		return;
	}
	d = (struct mostrace_dirtier *)room(w);
	put_head(&d->head, w, MOSTRACE_DIRTIER, sizeof(*d), end - (run->bytes >> 9), run->bytes);
	d->head.flags |= run->flags;
	d->dirty_ns = page->dirty_ns;
	d->pid = run->pid;
	d->tgid = page->tgid;
	d->uid = page->uid;
	d->pad = 0;
	__builtin_memcpy(d->comm, page->comm, sizeof(d->comm));
	w->used += sizeof(*d);
}

static __always_inline void close_dirtier(struct work *w)
{
	struct dirty_run *run = &w->walk.dirtier;

	if (run->bytes)
		put_dirtier(w, run, w->walk.sector);
	run->bytes = 0;
}

/* Finds what the current bio writes of the folio. */
static __always_inline void find_place(const struct work *w, const struct folio_view *folio,
				       struct dirty_place *place)
{
	if (w->walk.origin == MOSTRACE_ORIGIN_BDEV && find_buffer(place, w->buffer))
		return;
	place->key = folio->head;
	place->mapping = folio->mapping;
	place->index = folio->index;
	place->is_buffer = false;
}

/* Returns true if the kernel reported when this write began. */
static __always_inline bool has_begun(const struct work *w)
{
	return tells_writing && w->walk.origin != MOSTRACE_ORIGIN_BDEV;
}

/* Returns the dirtier, and the flags of its entry; 0 if it is not known. */
static __always_inline __u32 dirtier_of(const struct work *w, const struct dirty_place *place, __u32 *flags)
{
	struct dirty_page *page = dirt_of(place->key, has_begun(w));
	bool again;

	if (!page || page->dirty_ns > w->who.time_ns || page->mapping != place->mapping ||
	    page->index != place->index)
		return 0;
	/*
	 * The order matters, because user space counts what waits while this runs. What is being written was counted when its write
	 * began.
	 */
	if (!has_begun(w) && waits(page))
		count_dirt(DIRT_SETTLED);
	/* It is the rest of a folio, or of what could not be written the time before. */
	again = !waits(page) && page->taken_ns != w->who.time_ns;
	page->taken_ns = w->who.time_ns;
	*flags = page->flags | (w->walk.is_mapped ? MOSTRACE_MAPPED : 0) | (again ? MOSTRACE_AGAIN : 0);
	return page->doubt ? 0 : page->pid;
}

/* Continues the run with `chunk` bytes of the folio. */
static __always_inline void step_dirtier(struct work *w, const struct folio_view *folio, __u32 chunk)
{
	struct dirty_run *run = &w->walk.dirtier;
	struct dirty_place place;
	__u32 flags = 0;
	__u32 pid;

	find_place(w, folio, &place);
	pid = dirtier_of(w, &place, &flags);
	if (w->walk.settles)
		return;
	if (run->pid != pid || run->flags != flags)
		close_dirtier(w);
	if (!pid)
		return;
	if (!run->bytes) {
		run->key = place.key;
		run->pid = pid;
		run->flags = flags;
		run->has_begun = has_begun(w);
	}
	run->bytes += chunk;
}

#endif
