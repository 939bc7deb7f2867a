/* SPDX-License-Identifier: GPL-2.0-only */
/* A system call's number and arguments, and the open file of a descriptor. */
#ifndef MOSTRACE_SYSCALL_BPF_H
#define MOSTRACE_SYSCALL_BPF_H

#include "compat.bpf.h"
#include "registers.bpf.h"

#define CALLS_MAX 512

/* <uapi/linux/f2fs.h> */
#define F2FS_IOC_START_ATOMIC_WRITE 0xf501U
#define F2FS_IOC_COMMIT_ATOMIC_WRITE 0xf502U
#define F2FS_IOC_ABORT_ATOMIC_WRITE 0xf505U
#define F2FS_IOC_GARBAGE_COLLECT 0x4004f506U
#define F2FS_IOC_WRITE_CHECKPOINT 0xf507U
#define F2FS_IOC_FLUSH_DEVICE 0x4008f50aU
#define F2FS_IOC_GARBAGE_COLLECT_RANGE 0x4018f50bU
#define F2FS_IOC_START_ATOMIC_REPLACE 0xf519U
/* <uapi/linux/fs.h>, <uapi/linux/ext4.h> */
#define FIFREEZE 0xc0045877U
#define EXT4_IOC_CHECKPOINT 0x4004662bU

/* <linux/falloc.h>; the argument, struct space_resv, has the same 48 bytes on all 64-bit machines */
#define FS_IOC_RESVSP 0x40305828U
#define FS_IOC_UNRESVSP 0x40305829U
#define FS_IOC_RESVSP64 0x4030582aU
#define FS_IOC_UNRESVSP64 0x4030582bU
#define FS_IOC_ZERO_RANGE 0x40305839U

/*
 * Returns the address of the file that the current process has open under this number, or 0. It is global, so that the loads from a task
 * are verified once (see current_uid).
 */
__noinline __u64 open_file_at(__u32 fd)
{
	struct fdtable *table = OF_TASK(this_task(), files, fdt);

	return fd < OF_TASK(table, max_fds) ? PEEK_AT(__u64, OF_TASK(table, fd) + fd) : 0;
}

static __always_inline struct file *open_file(__u32 fd)
{
	return (struct file *)open_file_at(fd);
}

#endif
