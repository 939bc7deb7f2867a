/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Everything that differs between kernels from 4.14 to 7.2, except for the arguments of the
 * tracepoints, which probe.c and causes.c let the compiler find out. Kbuild greps the headers and defines the
 * MOSTRACE_ switches.
 */
#ifndef MOSTRACE_COMPAT_H
#define MOSTRACE_COMPAT_H

#include <linux/blkdev.h>
#include <linux/build_bug.h>
#include <linux/buffer_head.h>
#include <linux/dcache.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/tracepoint.h>
#include <linux/types.h>
#include <linux/uaccess.h>
#include <asm/syscall.h>

#ifndef MOSTRACE_BI_BDEV
#include <linux/genhd.h>
#endif

/* 5.1 (6bab69c65013) */
#ifndef static_assert
#define static_assert(expr)	_Static_assert(expr, #expr)
#endif

/* 5.12 (3bfe6106693b): before, no task of a process worked for io_uring. */
#ifndef PF_IO_WORKER
#define PF_IO_WORKER 0
#endif

/* 4.16 (8ced390c2b18) */
#ifndef MOSTRACE_POLL_T
typedef unsigned int __poll_t;
#endif

/* 4.20 (9c0be3f6b5d7): a module may have offsets instead of pointers. */
#ifndef MOSTRACE_TRACEPOINT_PTR
#define tracepoint_ptr_deref(at) (*(at))
#endif

/* 5.8 (fe557319aa06): probe_kernel_read() was renamed. */
#ifndef MOSTRACE_KERNEL_NOFAULT
#define copy_from_kernel_nofault(to, from, size) probe_kernel_read(to, from, size)
#endif

/*
 * Copies from the memory of the current task; -EFAULT if it would have to sleep. 5.5
 * (3d7081822f7f): probe_user_read() was added; 5.8 (c0ee37e85e0e): it was renamed.
 */
static inline long mostrace_copy_from_user(void *to, const void __user *from, size_t size)
{
#if defined(MOSTRACE_USER_NOFAULT)
	return copy_from_user_nofault(to, from, size);
#elif defined(MOSTRACE_PROBE_USER_READ)
	return probe_user_read(to, from, size);
#else
	long left = size;

	/* 5.0 (96d4f267e40f): access_ok() lost its first argument. */
#ifdef VERIFY_READ
	if (!access_ok(VERIFY_READ, from, size))
		return -EFAULT;
#else
	if (!access_ok(from, size))
		return -EFAULT;
#endif
	pagefault_disable();
	left = __copy_from_user_inatomic(to, from, size);
	pagefault_enable();
	return left ? -EFAULT : 0;
#endif
}

/* Stores the six arguments of a system call. Up to 5.0 (b35f549df1d7) they were a range. */
static inline void mostrace_syscall_arguments(struct pt_regs *regs, unsigned long *args)
{
#ifdef MOSTRACE_SYSCALL_RANGE
	syscall_get_arguments(current, regs, 0, 6, args);
#else
	syscall_get_arguments(current, regs, args);
#endif
}

/*
 * Returns an argument of the kernel's function that a kprobe has stopped at, one of the first two.
 * regs_get_kernel_argument() came to x86 with 4.20 and to arm64 with 5.5.
 */
#if defined(CONFIG_HAVE_FUNCTION_ARG_ACCESS_API) || defined(CONFIG_ARM64) || defined(CONFIG_X86_64)
#define MOSTRACE_ARGUMENT
static inline unsigned long mostrace_argument(struct pt_regs *regs, unsigned int n)
{
#if defined(CONFIG_HAVE_FUNCTION_ARG_ACCESS_API)
	return regs_get_kernel_argument(regs, n);
#elif defined(CONFIG_ARM64)
	return regs->regs[n];
#else
	return n ? regs->si : regs->di;
#endif
}
#endif

/* Reads a structure of other code, whose address may be anything; false if it cannot be read. */
#define mostrace_peek(to, from)							\
({										\
	typeof(to) __to = (to);							\
	const typeof(*__to) *__from = (from);					\
										\
	!copy_from_kernel_nofault(__to, __from, sizeof(*__to));			\
})

/* 5.12 (309dca309fc3): bi_disk and bi_partno were replaced by bi_bdev. */
static inline struct gendisk *mostrace_bio_disk(const struct bio *bio)
{
#ifdef MOSTRACE_BI_BDEV
	return bio->bi_bdev ? bio->bi_bdev->bd_disk : NULL;
#else
	return bio->bi_disk;
#endif
}

/*
 * Returns true for a device that takes bios and makes no requests from them: zram, dm. 5.0
 * (344e9ffcbd18): before, some queues of requests were not blk-mq's.
 */
static inline bool mostrace_is_bio_based(const struct gendisk *disk)
{
#ifdef MOSTRACE_QUEUE_IS_MQ
	return disk && !queue_is_mq(disk->queue);
#else
	return disk && !queue_is_rq_based(disk->queue);
#endif
}

/* Returns the number of the partition or disk; 0 if the bio does not have it. */
static inline dev_t mostrace_bio_dev(const struct bio *bio)
{
#ifdef MOSTRACE_BI_BDEV
	return bio->bi_bdev ? bio->bi_bdev->bd_dev : 0;
#else
	return 0;
#endif
}

/*
 * Returns the device that an inode's data is on: that of its filesystem or, if the inode is that of
 * a block device, the device itself.
 */
static inline struct block_device *mostrace_bdev_of(const struct inode *inode)
{
	return S_ISBLK(inode->i_mode) ? I_BDEV((struct inode *)inode) : inode->i_sb->s_bdev;
}

/*
 * Returns true if a bio that was remapped from this device has its sector on the disk. A bio passed
 * to a partition is remapped once more, from the partition to the disk.
 */
static inline bool mostrace_is_at_disk(const struct bio *bio, dev_t from)
{
#ifdef MOSTRACE_BI_BDEV
	return !bdev_is_partition(bio->bi_bdev) || bio->bi_bdev->bd_dev == from;
#else
	return !bio->bi_partno;
#endif
}

/* 5.11 (0d02129e76ed): the partition's range moved from bd_part to the bdev. */
static inline bool mostrace_bdev_range(struct block_device *bdev, u64 *start,
				       u64 *sectors)
{
#ifdef MOSTRACE_BI_BDEV
	*start = get_start_sect(bdev);
	*sectors = bdev_nr_sectors(bdev);
	return true;
#else
	struct hd_struct *part;
	sector_t from, size;

	if (!mostrace_peek(&part, &bdev->bd_part) ||
	    !mostrace_peek(&from, &part->start_sect) ||
	    !mostrace_peek(&size, &part->nr_sects))
		return false;
	*start = from;
	*sectors = size;
	return true;
#endif
}

/*
 * Finds the device whose node is at this path. Android's kernels export kern_path() to filesystems
 * alone. 5.11 (4e7b5671c6a8): only the number is returned.
 */
static inline int mostrace_lookup_bdev(const char *path, dev_t *dev)
{
#ifdef MOSTRACE_LOOKUP_DEV
	return lookup_bdev(path, dev);
#else
	struct block_device *bdev = lookup_bdev(path);

	if (IS_ERR(bdev))
		return PTR_ERR(bdev);
	*dev = bdev->bd_dev;
	bdput(bdev);
	return 0;
#endif
}

/*
 * Opens a device to look at it. 6.5 (0718afd47f70): holder operations were added; 6.9
 * (f3a608827d1f): a file represents the open device.
 */
static inline struct block_device *mostrace_bdev_open(dev_t dev, struct file **file)
{
#if defined(MOSTRACE_BDEV_FILE)
	*file = bdev_file_open_by_dev(dev, BLK_OPEN_READ, NULL, NULL);
	return IS_ERR(*file) ? ERR_CAST(*file) : file_bdev(*file);
#elif defined(MOSTRACE_HOLDER_OPS)
	return blkdev_get_by_dev(dev, BLK_OPEN_READ, NULL, NULL);
#else
	return blkdev_get_by_dev(dev, FMODE_READ, NULL);
#endif
}

static inline void mostrace_bdev_close(struct block_device *bdev, struct file *file)
{
#if defined(MOSTRACE_BDEV_FILE)
	fput(file);
#elif defined(MOSTRACE_HOLDER_OPS)
	blkdev_put(bdev, NULL);
#else
	blkdev_put(bdev, FMODE_READ);
#endif
}

/*
 * 5.16 (7b230db3b8d3): the fields of a head page are in struct folio; in 7.x page->index has
 * another name.
 */
static inline struct address_space *mostrace_page_mapping(struct page *page)
{
#ifdef MOSTRACE_FOLIO
	return READ_ONCE(page_folio(page)->mapping);
#else
	return READ_ONCE(compound_head(page)->mapping);
#endif
}

/* Returns the head page of a large folio, or of a single page. */
static inline struct page *mostrace_head(struct page *page)
{
#ifdef MOSTRACE_FOLIO
	return &page_folio(page)->page;
#else
	return compound_head(page);
#endif
}

/* Returns the page's index in its mapping, in pages. */
static inline u64 mostrace_page_index(struct page *page)
{
#ifdef MOSTRACE_FOLIO
	struct folio *head = page_folio(page);

	return (u64)READ_ONCE(head->index) + page_to_pfn(page) - folio_pfn(head);
#else
	struct page *head = compound_head(page);

	return (u64)READ_ONCE(head->index) + page_to_pfn(page) - page_to_pfn(head);
#endif
}

/* 5.11 (f3ba3c710ac5): kmap_local_page was added. Before, high memory is not read. */
static inline void *mostrace_map_page(struct page *page)
{
#ifdef MOSTRACE_KMAP_LOCAL
	return kmap_local_page(page);
#else
	return page_address(page);
#endif
}

static inline void mostrace_unmap_page(void *at)
{
#ifdef MOSTRACE_KMAP_LOCAL
	kunmap_local(at);
#endif
}

/*
 * Returns true if the size in iomap_dio already includes a bio of direct IO when that bio is
 * queued. 7.x adds it afterwards; that changed with the series that added bounce buffers.
 */
static inline bool mostrace_dio_counted(void)
{
#ifdef MOSTRACE_DIO_BOUNCE
	return false;
#else
	return true;
#endif
}

/* 7.x: the union that contains d_alias has no name. */
static inline struct dentry *mostrace_alias(struct inode *inode)
{
	struct hlist_node *first = READ_ONCE(inode->i_dentry.first);

	if (!first)
		return NULL;
#ifdef MOSTRACE_D_U
	return hlist_entry(first, struct dentry, d_u.d_alias);
#else
	return hlist_entry(first, struct dentry, d_alias);
#endif
}

/* Returns the counter of the changes to a dentry. 5.9 (26475371976c): it got a type of its own. */
static inline seqcount_t *mostrace_d_seq(struct dentry *dentry)
{
#ifdef MOSTRACE_D_SEQ_SPINLOCK
	return &dentry->d_seq.seqcount;
#else
	return &dentry->d_seq;
#endif
}

/*
 * Returns the function that is called when a buffer's IO ends. 7.x: bh_submit() stores it in the
 * bio, and b_end_io was removed.
 */
static inline void *mostrace_buffer_end_io(const struct buffer_head *bh,
					   const struct bio *bio)
{
#ifdef MOSTRACE_B_END_IO
	return bh->b_end_io;
#else
	return bio->bi_end_io;
#endif
}

#endif
