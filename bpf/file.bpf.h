/* SPDX-License-Identifier: GPL-2.0-only */
/* Inodes, and the file entries made of them. */
#ifndef MOSTRACE_FILE_BPF_H
#define MOSTRACE_FILE_BPF_H

#include "submitter.bpf.h"
#include "target.bpf.h"

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

static __always_inline __u32 inode_magic(struct inode *inode)
{
	return BPF_CORE_READ(inode, i_sb, s_magic);
}

/*
 * What names the file on its filesystem. FAT keeps no inode numbers: i_pos, the place of the
 * directory entry, is the nearest to one.
 */
static __always_inline __u64 file_number(struct inode *inode)
{
	struct msdos_inode_info *info;

	if (inode_magic(inode) != MSDOS_SUPER_MAGIC || !bpf_core_type_exists(struct msdos_inode_info))
		return inode_ino(inode);
	info = (void *)((char *)inode - bpf_core_field_offset(struct msdos_inode_info, vfs_inode));
	return BPF_CORE_READ(info, i_pos);
}

/* Whether file_number gives a number that the filesystem does not keep. */
static __always_inline bool is_number_passing(struct inode *inode)
{
	return inode_magic(inode) == MSDOS_SUPER_MAGIC &&
	       !bpf_core_type_exists(struct msdos_inode_info);
}

static __always_inline __u8 what_of(struct inode *inode)
{
	switch (BPF_CORE_READ(inode, i_mode) & S_IFMT) {
	case S_IFREG:
		return MOSTRACE_WHAT_REGULAR;
	case S_IFDIR:
		return MOSTRACE_WHAT_DIRECTORY;
	case S_IFLNK:
		return MOSTRACE_WHAT_SYMLINK;
	default:
		return MOSTRACE_WHAT_UNKNOWN;
	}
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
		r->file.parent = file_number(BPF_CORE_READ(parent, d_inode));
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
	r->file.what = what_of(inode);
	r->file.ino = file_number(inode);
	if (is_number_passing(inode))
		r->file.head.flags |= MOSTRACE_INO_PASSING;
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

#endif
