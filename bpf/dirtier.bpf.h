/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who dirtied a page of the page cache: the task that made it dirty after it was
 * clean, remembered until it is written. Not who wrote to it while it was dirty.
 *
 * A page may be dirtied again while it is being written. What a bio writes was
 * dirtied before the bio was queued; a page that two tasks dirtied before its
 * entries were made has two dirtiers, and then neither is reported.
 */
#ifndef MOSTRACE_DIRTIER_BPF_H
#define MOSTRACE_DIRTIER_BPF_H

#include "file.bpf.h"

/* A folio, known by its head page; the struct page may have become another's since. */
struct dirty_page {
	__u64 mapping;
	__u64 index;
	__u64 dirty_ns;
	__u64 taken_ns;		/* when a bio's entry was made of it last, or 0 */
	__u32 pid;
	__u32 tgid;
	__u32 uid;
	__u32 doubt;		/* somebody else dirtied it too */
	char comm[MOSTRACE_COMM_LEN];
};

/* The page that was seen longest ago is forgotten: it is not known then who dirtied it. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 17);
	__type(key, __u64);
	__type(value, struct dirty_page);
} dirty_pages SEC(".maps");

static __always_inline struct block_device *inode_bdev(struct inode *inode)
{
	if (!is_bdev(inode))
		return BPF_CORE_READ(inode, i_sb, s_bdev);
	if (!bpf_core_type_exists(struct bdev_inode))
		return 0;
	return (void *)((char *)inode - bpf_core_field_offset(struct bdev_inode, vfs_inode));
}

static __always_inline bool is_kthread(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, flags) & PF_KTHREAD;
}

/*
 * Writeback that cannot write a page dirties it again: the flusher did not make
 * the data. Another task may have, or may be the one that fsyncs: not known.
 */
static __always_inline void dirty_again(struct dirty_page *known, __u32 pid)
{
	if (known->pid != pid && !is_kthread())
		known->doubt = 1;
}

/* A clean page is made dirty, by the current task. */
static __always_inline int dirty_folio(struct page *head, struct address_space *mapping)
{
	struct inode *inode = BPF_CORE_READ(mapping, host);
	__u64 key = (__u64)head, id = bpf_get_current_pid_tgid();
	struct block_device *bdev = inode ? inode_bdev(inode) : 0;
	struct dirty_page *known, page = { };

	if (!bdev || !(__u32)id || !is_target_disk(BPF_CORE_READ(bdev, bd_disk)))
		return 0;
	page.mapping = (__u64)mapping;
	page.index = page_index(head, head);
	known = bpf_map_lookup_elem(&dirty_pages, &key);
	if (known && known->mapping == page.mapping && known->index == page.index &&
	    known->taken_ns < known->dirty_ns) {
		dirty_again(known, id);
		return 0;
	}
	page.dirty_ns = bpf_ktime_get_ns();
	page.pid = id;
	page.tgid = id >> 32;
	page.uid = bpf_get_current_uid_gid();
	bpf_get_current_comm(page.comm, sizeof(page.comm));
	bpf_map_update_elem(&dirty_pages, &key, &page, BPF_ANY);
	return 0;
}

/* (folio, mapping); before 5.18 (page, mapping). User space loads the one that the kernel has. */
SEC("raw_tp/writeback_dirty_folio")
int mostrace_dirty_folio(__u64 *ctx)
{
	return dirty_folio((struct page *)ctx[0], (struct address_space *)ctx[1]);
}

SEC("raw_tp/writeback_dirty_page")
int mostrace_dirty_page(__u64 *ctx)
{
	return dirty_folio(page_head((struct page *)ctx[0]), (struct address_space *)ctx[1]);
}

/* Consecutive bytes of a bio that one task dirtied. */
struct dirty_run {
	__u64 head;		/* its first page, in dirty_pages */
	__u32 bytes;
	__u32 pid;
};

/* Makes a dirtier entry. Not static: see put_file. */
__noinline int put_dirtier(__u64 head, __u64 sector, __u32 bytes, __u32 pid, __u32 stage)
{
	struct dirty_page *page = bpf_map_lookup_elem(&dirty_pages, &head);
	struct mostrace_dirtier *d;

	/* Another's by now. */
	if (!page || page->pid != pid)
		return 0;
	d = bpf_ringbuf_reserve(&entries, sizeof(*d), 0);
	if (!d) {
		lose(LOSS_ENTRIES_RING);
		return 0;
	}
	__builtin_memset(d, 0, sizeof(*d));
	d->head.type = MOSTRACE_DIRTIER;
	d->head.size = sizeof(*d);
	d->head.dev = target.disk_dev;
	d->head.time_ns = bpf_ktime_get_ns();
	d->head.sector = sector;
	d->head.bytes = bytes;
	d->head.cpu = bpf_get_smp_processor_id();
	d->head.stage = stage;
	d->dirty_ns = page->dirty_ns;
	d->pid = pid;
	d->tgid = page->tgid;
	d->uid = page->uid;
	__builtin_memcpy(d->comm, page->comm, sizeof(d->comm));
	bpf_ringbuf_submit(d, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline void close_dirtier(struct dirty_run *run, __u64 end, __u32 stage)
{
	if (run->bytes)
		put_dirtier(run->head, end - (run->bytes >> 9), run->bytes, run->pid, stage);
	run->bytes = 0;
}

/* Who dirtied what a bio that was queued then writes of the page; 0 if that is not known. */
__noinline int dirtier_of(__u64 head, __u64 queued_ns)
{
	struct dirty_page *page = bpf_map_lookup_elem(&dirty_pages, &head);
	struct page *at = (struct page *)head;

	if (!page || page->dirty_ns > queued_ns ||
	    page->mapping != (__u64)page_mapping(at) || page->index != page_index(at, at))
		return 0;
	page->taken_ns = bpf_ktime_get_ns();
	return page->doubt ? 0 : page->pid;
}

/* Goes on with the run, `chunk` bytes of the page of this head. */
static __always_inline void step_dirtier(struct dirty_run *run, __u64 head, __u64 sector,
					 __u32 chunk, __u64 queued_ns, __u32 stage)
{
	__u32 pid = dirtier_of(head, queued_ns);

	if (run->pid != pid)
		close_dirtier(run, sector, stage);
	if (!pid)
		return;
	if (!run->bytes) {
		run->head = head;
		run->pid = pid;
	}
	run->bytes += chunk;
}

#endif
