/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel types that the probes read, with only the fields that are used. CO-RE relocates them to the running
 * kernel's BTF, so that no vmlinux.h is needed for building. Fields that moved or were renamed are in compat.bpf.h.
 */
#ifndef MOSTRACE_KERNEL_BPF_H
#define MOSTRACE_KERNEL_BPF_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;
typedef _Bool bool;

enum { false = 0, true = 1 };

/* <linux/bpf.h>: the ABI's numbers */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_RB_NO_WAKEUP = 1 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct qstr {
	__u64 hash_len;
	__u32 len;
	const unsigned char *name;
};

struct inode;

struct seqcount {
	unsigned int sequence;
};

struct seqcount_spinlock {
	struct seqcount seqcount;
};

struct dentry {
	struct seqcount_spinlock d_seq;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
};

struct kuid {
	__u32 val;
};

struct cred {
	struct kuid uid;
	struct kuid fsuid;
};

struct file;

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

/* fs/kernfs: `parent` was renamed in 6.15 (633488947ef6). */
struct kernfs_node {
	struct kernfs_node *__parent;
	const char *name;
	__u64 id;
};

struct kernfs_node___before_6_15 {
	struct kernfs_node *parent;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct kioctx_table;

struct mm_struct {
	struct kioctx_table *ioctx_table;
};

struct task_struct {
	void *stack;
	unsigned int flags;
	int pid;
	int tgid;
	struct task_struct *group_leader;
	struct mm_struct *mm;
	const struct cred *cred;
	char comm[16];
	void *set_child_tid;
	struct files_struct *files;
	void *journal_info;
	struct css_set *cgroups;	/* with CONFIG_CGROUPS */
};

/* kernel/kthread.c, kernel/workqueue_internal.h */
struct kthread {
	void *data;
};

struct worker {
	void *current_work;
	void *current_func;
};

struct block_device;

struct super_block {
	__u32 s_dev;
	struct block_device *s_bdev;
	unsigned long s_flags;
	unsigned long s_magic;
	struct dentry *s_root;
	int s_stack_depth;
};

struct xarray {
	void *xa_head;
};

struct xa_node {
	unsigned char shift;
	void *slots[1];
};

struct address_space {
	struct inode *host;
	struct xarray i_pages;
	struct {
		int counter;
	} i_mmap_writable;
};

struct inode {
	__u16 i_mode;
	struct super_block *i_sb;
	struct address_space *i_mapping;
	unsigned int i_nlink;
	__u32 i_rdev;
	unsigned int i_flags;
	__u8 i_blkbits;
	__u32 i_generation;
	__s64 i_size;
	struct {
		int counter;
	} i_count;
	struct hlist_head i_dentry;
	struct address_space i_data;
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	struct address_space *f_mapping;
	struct path f_path;
	__s64 f_pos;
	unsigned int f_flags;
	unsigned int f_mode;
};

struct kiocb {
	struct file *ki_filp;
	__s64 ki_pos;
	int ki_flags;
};

/* fs/iomap/direct-io.c */
struct iomap_dio {
	struct kiocb *iocb;
	__s64 size;
	bool wait_for_completion;
	struct {
		struct task_struct *waiter;
	} submit;
	struct {
		struct work_struct {
			void *func;
		} work;
	} aio;
};

/* fs/direct-io.c */
struct dio {
	struct inode *inode;
};

/* fs/fat/fat.h */
struct msdos_inode_info {
	__s64 i_pos;
	struct inode vfs_inode;
};

/* fs/f2fs/iostat.h */
struct bio_post_read_ctx;
struct bio_iostat_ctx {
	struct bio_post_read_ctx *post_read_ctx;
};

struct page;

struct bio_vec {
	struct page *bv_page;
	unsigned int bv_len;
	unsigned int bv_offset;
};

struct bvec_iter {
	__u64 bi_sector;
	unsigned int bi_size;
	unsigned int bi_idx;
	unsigned int bi_bvec_done;
};

struct request_queue;

struct gendisk {
	int major;
	int first_minor;
	struct request_queue *queue;
};

struct bio {
	unsigned int bi_opf;
	unsigned short bi_flags;
	__u8 bi_status;
	struct bvec_iter bi_iter;
	void *bi_end_io;
	void *bi_private;
	struct bio_vec *bi_io_vec;
};

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int __data_len;
	__u64 __sector;
	struct bio *bio;
};

/* drivers/md/dm-core.h and dm-crypt.c, in the BTF of their modules */
struct dm_io {
	struct bio *orig_bio;
};

struct dm_target_io {
	struct dm_io *io;
	__u64 old_sector;
	struct bio clone;
};

struct dm_crypt_io {
	struct bio *base_bio;
};

enum bh_state_bits {
	BH_Dirty = 1,
};

struct buffer_head {
	unsigned long b_state;
	struct buffer_head *b_this_page;
	__u64 b_blocknr;
	unsigned long b_size;
	char *b_data;
	struct block_device *b_bdev;
	void *b_private;
	struct page *b_page;
};

/* <linux/jbd2.h>, in jbd2's own BTF where it is a module */
struct journal_s {
	struct transaction_s *j_committing_transaction;
};

struct transaction_s {
	struct journal_s *t_journal;
	__u32 t_tid;
	struct journal_head *t_buffers;
	struct journal_head *t_forget;
	struct journal_head *t_shadow_list;
	struct {
		int counter;
	} t_updates;
	struct {
		int counter;
	} t_handle_count;
};

struct journal_head {
	struct buffer_head *b_bh;
	unsigned int b_modified;
	struct transaction_s *b_transaction;
	struct transaction_s *b_next_transaction;
	struct journal_head *b_tnext;
	struct journal_head *b_tprev;
};

struct jbd2_journal_handle {
	struct transaction_s *h_transaction;
};

#pragma clang attribute pop

/* Flag bits move between kernels; their names do not. */
enum pageflags {
	PG_head = 6,
};

enum req_flag_bits {
	__REQ_SYNC = 11,
	__REQ_META = 12,
	__REQ_IDLE = 15,
	__REQ_FUA = 17,
	__REQ_PREFLUSH = 18,
	__REQ_RAHEAD = 19,
};

/* include/linux/blk_types.h: the low 8 bits of bi_opf and cmd_flags */
#define REQ_OP_MASK 0xffU
enum {
	REQ_OP_READ = 0,
	REQ_OP_WRITE = 1,
	REQ_OP_FLUSH = 2,
	REQ_OP_DISCARD = 3,
	REQ_OP_SECURE_ERASE = 5,
	REQ_OP_WRITE_ZEROES = 9,
	REQ_OP_SCSI_IN = 32,	/* passthrough from here on */
};

/* <linux/sched.h> */
#define PF_IO_WORKER 0x00000010U
#define PF_WQ_WORKER 0x00000020U
#define PF_KTHREAD 0x00200000U
/* Tasks that make no system calls. */
#define PF_NO_CALL (PF_IO_WORKER | PF_KTHREAD)

/* <linux/fs.h>: the filesystem is mounted */
#define SB_BORN (1UL << 29)

#define S_IFMT 0170000
#define S_IFCHR 0020000
#define S_IFBLK 0060000
#define S_IFREG 0100000
#define S_IFDIR 0040000
#define S_IFLNK 0120000

/* <linux/magic.h> */
#define MSDOS_SUPER_MAGIC 0x4d44U
#define EXT4_SUPER_MAGIC 0xef53U

#endif
