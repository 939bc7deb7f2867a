/* SPDX-License-Identifier: GPL-2.0-only */
/* The numbers by which filesystems identify files. */
#ifndef MOSTRACE_NUMBER_BPF_H
#define MOSTRACE_NUMBER_BPF_H

#include "compat.bpf.h"

/* This is true if the kernel has FAT and tells where i_pos is. */
#define KNOWS_FAT bpf_core_type_exists(struct msdos_inode_info)

static __always_inline __u32 inode_magic(struct inode *inode)
{
	return LOAD(inode, i_sb, s_magic);
}

/*
 * Returns the number by which the filesystem identifies the file. FAT keeps no inode numbers; i_pos, the position of
 * the directory entry, comes closest.
 */
static __always_inline __u64 file_number(struct inode *inode, __u32 magic)
{
	struct msdos_inode_info *info;

	if (magic != MSDOS_SUPER_MAGIC || !KNOWS_FAT)
		return inode_ino(inode);
	info = (void *)((char *)inode - bpf_core_field_offset(struct msdos_inode_info, vfs_inode));
	return BPF_CORE_READ(info, i_pos);
}

/* Does the same for callers that do not know the filesystem. It is looked up only if the kernel has FAT. */
static __always_inline __u64 number_of(struct inode *inode)
{
	return KNOWS_FAT ? file_number(inode, inode_magic(inode)) : inode_ino(inode);
}

/* Returns true if file_number gives a number that the filesystem does not store. */
static __always_inline bool is_number_passing(__u32 magic)
{
	return magic == MSDOS_SUPER_MAGIC && !KNOWS_FAT;
}

#endif
