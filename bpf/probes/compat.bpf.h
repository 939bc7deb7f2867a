/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Everything that differs between kernels. Each function asks BTF and never the version, because fields and arguments
 * also move within stable series.
 */
#ifndef MOSTRACE_COMPAT_BPF_H
#define MOSTRACE_COMPAT_BPF_H

#include "symbols.bpf.h"
#include "window.bpf.h"
#include "xarray.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* 5.12 (309dca309fc3): bi_disk and bi_partno were replaced by bi_bdev. */
struct block_device {
	__u64 bd_start_sect;
	struct gendisk *bd_disk;
	__u32 bd_dev;
};
/* Before 5.11 the first sector was in a structure of the partition's (0d02129e76ed). */
struct hd_struct {
	__u64 start_sect;
};
struct block_device___part {
	struct hd_struct *bd_part;
};
struct bdev_inode {
	struct block_device bdev;
	struct inode vfs_inode;
};
struct bio___bdev {
	struct block_device *bi_bdev;
};
struct bio___disk {
	struct gendisk *bi_disk;
};

/* CONFIG_BLK_INLINE_ENCRYPTION */
struct bio___crypt {
	void *bi_crypt_context;
};

/* 6.10 (22f89a4f50d6): bd_inode was replaced by bd_mapping. */
struct block_device___inode {
	struct inode *bd_inode;
};
struct block_device___mapping {
	struct address_space *bd_mapping;
};

/* 5.16 (f3fa33acca9f): rq->rq_disk was removed; the disk is reached through the queue. */
struct request___rq_disk {
	struct gendisk *rq_disk;
};
struct request_queue {
	struct gendisk *disk;
};

/* 5.16 (7b230db3b8d3): struct folio was added. */
struct folio {
	struct address_space *mapping;
	unsigned long index;
};
struct page___plain {
	struct address_space *mapping;
	unsigned long index;
};
/* 7.x: compound_head was renamed to compound_info. */
struct page___head {
	unsigned long compound_head;
};
struct page___info {
	unsigned long compound_info;
};
struct page___private {
	unsigned long private;
};
/* Only its size is used. */
struct page {
	unsigned long flags;
};

/* 7.x: inode->i_ino is a u64 on every machine; before it was an unsigned long. */
struct inode___ino_long {
	unsigned long i_ino;
};

/* d_alias is in the union d_u, which has no name in newer kernels. */
struct dentry___d_u {
	union {
		struct hlist_node d_alias;
	} d_u;
};
struct dentry___flat {
	struct hlist_node d_alias;
};

/* 5.17 (e32cf5dfbe22): a kernel thread's own structure, which was in set_child_tid before. */
struct task_struct___worker {
	void *worker_private;
};

/* Up to 6.18 this shows the purpose of a submit_bh bio; 7.x has it in bi_end_io. */
struct buffer_head___end_io {
	void *b_end_io;
};

#pragma clang attribute pop

/* <linux/bpf.h>: only its name is used. */
enum bpf_func_id {
	BPF_FUNC_loop = 181,
};

/* Filled in by user space. */
const volatile struct addresses symbols;

const volatile __u32 page_shift = 12;
/* First sector of the traced partition, for kernels whose bio no longer names it (5.10). */
const volatile __u64 target_start;

/*
 * jbd2's structures have no BTF if jbd2 is a module of a kernel before 5.11. In kernels with a ring buffer (5.8) and without bpf_loop
 * (5.17), the fields that are read here did not move: they are behind pointers and numbers, and behind a lock, the size of which
 * depends on the kernel's configuration.
 */
struct spinlock {} __attribute__((preserve_access_index));

#define LOCK_BYTES bpf_core_type_size(struct spinlock)
#define HEAD_MODIFIED (16 + LOCK_BYTES)
#define HEAD_TRANSACTION (((LOCK_BYTES + 27) & ~7ULL) + 16)
#define TRANSACTION_TID 8
#define TRANSACTION_UPDATES (96 + ((LOCK_BYTES + 7) & ~7ULL) + 48)
#define TRANSACTION_HANDLES (TRANSACTION_UPDATES + 12)
#define HANDLE_TRANSACTION 0

static __always_inline bool is_jbd2_plain(void)
{
	return !bpf_core_type_exists(struct journal_head) &&
	       !bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop);
}

static __always_inline bool knows_jbd2(void)
{
	return bpf_core_type_exists(struct journal_head) || is_jbd2_plain();
}

/* PEEK for one field of a structure of jbd2's, which is at `offset` where there is no BTF. */
#define JBD2(object, field, offset)									\
	({												\
		typeof((object)->field) __field = 0;							\
													\
		if (is_jbd2_plain())									\
			bpf_probe_read_kernel(&__field, sizeof(__field), (char *)(object) + (offset));	\
		else											\
			__field = PEEK(object, field);							\
		__field;										\
	})

static __always_inline struct gendisk *bio_disk(struct bio *bio)
{
	if (bpf_core_field_exists(struct bio___bdev, bi_bdev)) {
		struct block_device *bdev = BPF_CORE_READ((struct bio___bdev *)bio, bi_bdev);

		return bdev ? BPF_CORE_READ(bdev, bd_disk) : 0;
	}
	return BPF_CORE_READ((struct bio___disk *)bio, bi_disk);
}

/* Returns the number of the partition or disk; 0 if the bio does not have it. */
static __always_inline __u32 bio_dev(struct bio *bio)
{
	struct block_device *bdev;

	if (!bpf_core_field_exists(struct bio___bdev, bi_bdev))
		return 0;
	bdev = BPF_CORE_READ((struct bio___bdev *)bio, bi_bdev);
	return bdev ? BPF_CORE_READ(bdev, bd_dev) : 0;
}

/* Returns the disk's sector with which a partition begins. */
static __always_inline __u64 first_sector(struct block_device *bdev)
{
	struct block_device___part *of = (void *)bdev;

	return bpf_core_field_exists(bdev->bd_start_sect) ? LOAD(bdev, bd_start_sect) : BPF_CORE_READ(of, bd_part, start_sect);
}

static __always_inline struct kthread *task_kthread(struct task_struct *task)
{
	if (bpf_core_field_exists(struct task_struct___worker, worker_private))
		return BPF_CORE_READ((struct task_struct___worker *)task, worker_private);
	return BPF_CORE_READ(task, set_child_tid);
}

/* Copies a task's name, MOSTRACE_COMM_LEN bytes with NULs behind it: from 6.2 on at the latest, the kernel keeps it so. */
static __always_inline void copy_comm(char *comm, const struct task_struct *task)
{
	__u64 *words = (__u64 *)comm;

	words[0] = *(__u64 *)task->comm;
	words[1] = *(__u64 *)(task->comm + 8);
}

/* Stores the current task's name. The helper of 6.1 writes up to the first NUL, and leaves what was there behind it. */
static __always_inline void current_comm(char *comm)
{
	__u64 *words = (__u64 *)comm;
	struct task_struct *task;

	if (HAS_TYPES) {
		copy_comm(comm, bpf_get_current_task_btf());
		return;
	}
	words[0] = 0;
	words[1] = 0;
	bpf_get_current_comm(comm, sizeof(task->comm));
}

static __always_inline __u32 current_pid(void)
{
	return HAS_TYPES ? bpf_get_current_task_btf()->pid : bpf_get_current_pid_tgid();
}

/*
 * The helper goes by way of the first user namespace's table, and returns the same. LOAD casts the task: for each pointer that it loads
 * from one that it trusts, the verifier looks through the names of all the kernel's types, which takes milliseconds.
 */
static __always_inline __u32 current_uid(void)
{
	struct task_struct *task;

	if (!HAS_TYPES)
		return bpf_get_current_uid_gid();
	task = bpf_get_current_task_btf();
	return LOAD(task, cred, uid.val);
}

static __always_inline __u32 current_tgid(void)
{
	return HAS_TYPES ? bpf_get_current_task_btf()->tgid : bpf_get_current_pid_tgid() >> 32;
}

/* Returns the function that the current task executes if it is a workqueue's worker; otherwise 0. */
static __always_inline __u64 current_work(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct worker *worker;

	if (!(LOAD(task, flags) & PF_WQ_WORKER))
		return 0;
	worker = BPF_CORE_READ(task_kthread(task), data);
	return (__u64)BPF_CORE_READ(worker, current_func);
}

static __always_inline struct gendisk *rq_disk(struct request *rq)
{
	if (bpf_core_field_exists(struct request___rq_disk, rq_disk))
		return BPF_CORE_READ((struct request___rq_disk *)rq, rq_disk);
	return BPF_CORE_READ(rq, q, disk);
}

static __always_inline __u64 inode_ino(struct inode *inode)
{
	__u64 ino = 0;
	__u32 size = bpf_core_field_size(struct inode___ino_long, i_ino);
	char *at = (char *)inode + bpf_core_field_offset(struct inode___ino_long, i_ino);

	if (HAS_TYPES)
		return bpf_core_cast(inode, struct inode___ino_long)->i_ino;
	bpf_probe_read_kernel(&ino, size <= 8 ? size : 8, at);
	return ino;
}

/* Returns the first dentry of an inode, or NULL. */
static __always_inline struct dentry *inode_dentry(struct inode *inode)
{
	struct hlist_node *first = PEEK(inode, i_dentry.first);
	__u64 offset;

	if (!first)
		return 0;
	if (bpf_core_field_exists(struct dentry___d_u, d_u.d_alias))
		offset = bpf_core_field_offset(struct dentry___d_u, d_u.d_alias);
	else if (bpf_core_field_exists(struct dentry___flat, d_alias))
		offset = bpf_core_field_offset(struct dentry___flat, d_alias);
	else
		return 0;
	return (struct dentry *)((char *)first - offset);
}

/* Returns where a struct page says whether it is a tail, and of which page. */
static __always_inline __u64 page_info_offset(void)
{
	if (bpf_core_field_exists(struct page___head, compound_head))
		return bpf_core_field_offset(struct page___head, compound_head);
	return bpf_core_field_offset(struct page___info, compound_info);
}

/*
 * Returns a tail page's head, given its compound_head. In 7.x with HUGETLB_PAGE_OPTIMIZE_VMEMMAP the word is an address
 * mask instead of a pointer; a mask is almost all ones.
 */
static __always_inline __u64 head_by(__u64 page, __u64 info)
{
	info &= ~1ULL;
	return ~info < (1ULL << 32) ? page & info : info;
}

/* Returns the head of the page's folio. */
static __always_inline __u64 page_head(__u64 page)
{
	__u64 info = PEEK_AT(__u64, page + page_info_offset());

	return info & 1 ? head_by(page, info) : page;
}

/*
 * A page and its folio's head. Only the head has the fields that lead to a file; a page outside a compound page is its
 * own head.
 */
struct folio_view {
	__u64 head;
	__u64 mapping;
	__u64 index;		/* the head's index in its mapping, in pages */
	__u64 tail;		/* pages from the head to the page */
	__u64 private;		/* the head's private field */
	bool large;
};

/* struct page is longer than this on every kernel and machine. */
#define PAGE_WORDS 6

/* Without types, copies the words of a struct page at once. */
static __always_inline void copy_page(__u64 *words, __u64 page)
{
	if (!HAS_TYPES)
		bpf_probe_read_kernel(words, PAGE_WORDS * sizeof(*words), (void *)page);
}

/* Returns a word of a struct page, which was copied to `words` if there are no types. */
static __always_inline __u64 page_word(const __u64 *words, __u64 page, __u64 offset)
{
	return HAS_TYPES ? PEEK_AT(__u64, page + offset) : *(__u64 *)((char *)words + offset);
}

static __always_inline void view_folio(struct folio_view *f, __u64 page)
{
	__u64 words[PAGE_WORDS], info;

	copy_page(words, page);
	info = page_word(words, page, page_info_offset());
	f->head = page;
	f->tail = 0;
	/* The flags are the first word. */
	f->large = page_word(words, page, 0) >> bpf_core_enum_value(enum pageflags, PG_head) & 1;
	if (info & 1) {
		f->head = head_by(page, info);
		f->tail = (page - f->head) / bpf_core_type_size(struct page);
		f->large = true;
		copy_page(words, f->head);
	}
	f->private = page_word(words, f->head, bpf_core_field_offset(struct page___private, private));
	if (bpf_core_type_exists(struct folio)) {
		f->mapping = page_word(words, f->head, bpf_core_field_offset(struct folio, mapping));
		f->index = page_word(words, f->head, bpf_core_field_offset(struct folio, index));
	} else {
		f->mapping = page_word(words, f->head, bpf_core_field_offset(struct page___plain, mapping));
		f->index = page_word(words, f->head, bpf_core_field_offset(struct page___plain, index));
	}
}

/* Returns the index of a folio's head in its mapping, in pages. */
static __always_inline __u64 folio_index(__u64 head)
{
	struct folio_view folio;

	if (HAS_TYPES && bpf_core_type_exists(struct folio))
		return LOAD((struct folio *)head, index);
	view_folio(&folio, head);
	return folio.index;
}

/*
 * Views the page behind a bounce page (fscrypt's ciphertext), which has no mapping of its own and holds the file's page
 * in its private field. Any other page is viewed itself.
 */
static __always_inline void view_folio_behind(struct folio_view *f, __u64 page)
{
	view_folio(f, page);
	if (!f->mapping && f->private >> 63 && !(f->private & 7))
		view_folio(f, f->private);
}

static __always_inline __u64 read_symbol(__u64 at)
{
	__u64 value = 0;

	if (at)
		bpf_probe_read_kernel(&value, sizeof(value), (void *)at);
	return value;
}

/*
 * Relates the linear maps of struct pages and of memory: the address of the memory whose struct page would be at
 * address 0. x86-64 stores the bases of these maps in variables; on other machines they are constants that BTF does not
 * have, so one page of which both addresses are known is used instead. The value may be any number: it is 0 on arm64
 * before 6.9.
 */
static __u64 linear_base;
static bool has_linear_base;

static __always_inline __u64 linear_offset(__u64 page)
{
	return page / bpf_core_type_size(struct page) << page_shift;
}

/* Sets it from a page of which both addresses are known. */
static __always_inline void set_linear_base(__u64 bytes, __u64 page)
{
	linear_base = bytes - linear_offset(page);
	has_linear_base = true;
}

/* Returns the page with a block device's first bytes, or 0 if it is not in the page cache. */
static __always_inline __u64 first_page_of(struct block_device *bdev)
{
	struct address_space *mapping;

	if (bpf_core_field_exists(struct block_device___mapping, bd_mapping))
		mapping = BPF_CORE_READ((struct block_device___mapping *)bdev, bd_mapping);
	else if (bpf_core_field_exists(struct block_device___inode, bd_inode))
		mapping = BPF_CORE_READ((struct block_device___inode *)bdev, bd_inode, i_mapping);
	else
		return 0;
	return xa_pointer((__u64)BPF_CORE_READ(mapping, i_pages.xa_head), 0);
}

/*
 * Uses the buffer_head of the first block, which ext4 and f2fs read when they are mounted, and the recorder before
 * it begins.
 */
static __always_inline void learn_linear_base(struct block_device *bdev)
{
	__u64 page = first_page_of(bdev), data;
	struct folio_view folio;
	struct buffer_head *bh;

	if (!page)
		return;
	view_folio(&folio, page);
	bh = (struct buffer_head *)folio.private;
	if (!bh || (__u64)BPF_CORE_READ(bh, b_page) != page)
		return;
	data = (__u64)BPF_CORE_READ(bh, b_data);
	if (data && !(data & ((1ULL << page_shift) - 1)))
		set_linear_base(data, page);
}

static __always_inline void read_linear_base(void)
{
	__u64 bytes = read_symbol(symbols.page_offset_base);
	__u64 pages = read_symbol(symbols.vmemmap_base);

	if (bytes && pages)
		set_linear_base(bytes, pages);
}

/* Returns the address at which a page's memory is mapped, or NULL; `bdev` is the device of its filesystem. */
static __always_inline void *page_address(__u64 page, struct block_device *bdev)
{
	if (!has_linear_base)
		read_linear_base();
	if (!has_linear_base && bdev)
		learn_linear_base(bdev);
	return has_linear_base ? (void *)(linear_base + linear_offset(page)) : 0;
}

/* Returns a journal_head's buffer, which is its first field on every kernel. */
static __always_inline struct buffer_head *journal_buffer(struct journal_head *jh)
{
	return PEEK_AT(struct buffer_head *, jh);
}

/* Returns the transaction that a buffer is part of, or 0. */
static __always_inline __u32 journal_tid(struct journal_head *jh)
{
	struct transaction_s *transaction;

	if (!knows_jbd2())
		return 0;
	transaction = JBD2(jh, b_transaction, HEAD_TRANSACTION);
	return JBD2(transaction, t_tid, TRANSACTION_TID);
}

/* Returns true if a bio with a single buffer ends in jbd2's commit code. */
static __always_inline bool ends_in_jbd2(__u64 bio_end_io, struct buffer_head *bh)
{
	__u64 want = symbols.journal_end_buffer_io_sync;

	if (!want)
		return false;
	if (bio_end_io == want)
		return true;
	return bpf_core_field_exists(struct buffer_head___end_io, b_end_io) &&
	       (__u64)BPF_CORE_READ((struct buffer_head___end_io *)bh, b_end_io) == want;
}

#endif
