// SPDX-License-Identifier: GPL-2.0-only
/*
 * The description of each system call, with the same content as bpf/src/source/bpf/calls.rs for the
 * probes.
 */
#include <linux/kernel.h>
#include <asm/unistd.h>
#include "mostrace.h"
#include "syscalls.h"

#define INSIDE	MOSTRACE_SYSCALL_INSIDE
#define PATH	MOSTRACE_SYSCALL_PATH
#define AT	MOSTRACE_SYSCALL_AT
#define VECTOR	MOSTRACE_SYSCALL_VECTOR
#define RWF	MOSTRACE_SYSCALL_RWF

static const u16 syscalls[] = {
	[__NR_write] = MOSTRACE_CALL_WRITE,
	[__NR_writev] = MOSTRACE_CALL_WRITE | VECTOR,
	[__NR_pwrite64] = MOSTRACE_CALL_WRITE | AT,
	[__NR_pwritev] = MOSTRACE_CALL_WRITE | AT | VECTOR,
	[__NR_pwritev2] = MOSTRACE_CALL_WRITE | AT | VECTOR | RWF,
	[__NR_fsync] = MOSTRACE_CALL_FSYNC,
	[__NR_fdatasync] = MOSTRACE_CALL_FDATASYNC,
	[__NR_sync_file_range] = MOSTRACE_CALL_SYNC_RANGE,
	[__NR_syncfs] = MOSTRACE_CALL_SYNC,
	[__NR_sync] = MOSTRACE_CALL_SYNC | PATH,
	[__NR_msync] = MOSTRACE_CALL_MSYNC | PATH,
	[__NR_ftruncate] = MOSTRACE_CALL_TRUNCATE,
	[__NR_truncate] = MOSTRACE_CALL_TRUNCATE | PATH,
	[__NR_fallocate] = MOSTRACE_CALL_FALLOCATE,
	[__NR_unlinkat] = MOSTRACE_CALL_UNLINK | PATH,
	[__NR_renameat2] = MOSTRACE_CALL_RENAME | PATH,
#ifdef __NR_renameat
	[__NR_renameat] = MOSTRACE_CALL_RENAME | PATH,
#endif
	[__NR_mkdirat] = MOSTRACE_CALL_MKDIR | PATH,
	[__NR_linkat] = MOSTRACE_CALL_LINK | PATH,
	[__NR_symlinkat] = MOSTRACE_CALL_LINK | PATH,
	[__NR_mknodat] = MOSTRACE_CALL_LINK | PATH,
	[__NR_openat] = MOSTRACE_CALL_OPEN | INSIDE,
#ifdef __NR_openat2
	[__NR_openat2] = MOSTRACE_CALL_OPEN | INSIDE,
#endif
	[__NR_close] = MOSTRACE_CALL_CLOSE | INSIDE,
#ifdef __NR_close_range
	[__NR_close_range] = MOSTRACE_CALL_CLOSE | INSIDE,
#endif
	[__NR_setxattr] = MOSTRACE_CALL_XATTR | INSIDE,
	[__NR_lsetxattr] = MOSTRACE_CALL_XATTR | INSIDE,
	[__NR_fsetxattr] = MOSTRACE_CALL_XATTR | INSIDE,
	[__NR_removexattr] = MOSTRACE_CALL_XATTR | INSIDE,
	[__NR_lremovexattr] = MOSTRACE_CALL_XATTR | INSIDE,
	[__NR_fremovexattr] = MOSTRACE_CALL_XATTR | INSIDE,
	[__NR_read] = MOSTRACE_CALL_READ | INSIDE,
	[__NR_readv] = MOSTRACE_CALL_READ | INSIDE,
	[__NR_pread64] = MOSTRACE_CALL_READ | INSIDE,
	[__NR_preadv] = MOSTRACE_CALL_READ | INSIDE,
	[__NR_preadv2] = MOSTRACE_CALL_READ | INSIDE,
	[__NR_getdents64] = MOSTRACE_CALL_READ | INSIDE,
	[__NR_readlinkat] = MOSTRACE_CALL_READ | INSIDE,
	[__NR_execve] = MOSTRACE_CALL_READ | INSIDE,
#ifdef __NR_io_uring_enter
	[__NR_io_uring_enter] = MOSTRACE_CALL_URING | INSIDE,
#endif
	[__NR_fchmod] = MOSTRACE_CALL_ATTR | INSIDE,
	[__NR_fchmodat] = MOSTRACE_CALL_ATTR | INSIDE,
	[__NR_fchown] = MOSTRACE_CALL_ATTR | INSIDE,
	[__NR_fchownat] = MOSTRACE_CALL_ATTR | INSIDE,
	[__NR_utimensat] = MOSTRACE_CALL_ATTR | INSIDE,
	[__NR_mount] = MOSTRACE_CALL_MOUNT | INSIDE,
#ifdef __NR_fsconfig
	[__NR_fsconfig] = MOSTRACE_CALL_MOUNT | INSIDE,
#endif
	[__NR_umount2] = MOSTRACE_CALL_UMOUNT | INSIDE,
	[__NR_sendfile] = MOSTRACE_CALL_SPLICE | INSIDE,
	[__NR_splice] = MOSTRACE_CALL_SPLICE | INSIDE,
	[__NR_copy_file_range] = MOSTRACE_CALL_SPLICE | INSIDE,
/* These do not exist on newer architectures, such as arm64. */
#ifdef __NR_open
	[__NR_unlink] = MOSTRACE_CALL_UNLINK | PATH,
	[__NR_rmdir] = MOSTRACE_CALL_UNLINK | PATH,
	[__NR_rename] = MOSTRACE_CALL_RENAME | PATH,
	[__NR_mkdir] = MOSTRACE_CALL_MKDIR | PATH,
	[__NR_link] = MOSTRACE_CALL_LINK | PATH,
	[__NR_symlink] = MOSTRACE_CALL_LINK | PATH,
	[__NR_mknod] = MOSTRACE_CALL_LINK | PATH,
	[__NR_open] = MOSTRACE_CALL_OPEN | INSIDE,
	[__NR_creat] = MOSTRACE_CALL_OPEN | INSIDE,
	[__NR_getdents] = MOSTRACE_CALL_READ | INSIDE,
	[__NR_chmod] = MOSTRACE_CALL_ATTR | INSIDE,
	[__NR_chown] = MOSTRACE_CALL_ATTR | INSIDE,
	[__NR_lchown] = MOSTRACE_CALL_ATTR | INSIDE,
	[__NR_utimes] = MOSTRACE_CALL_ATTR | INSIDE,
#endif
};

u16 mostrace_syscall(long number)
{
	return number >= 0 && number < ARRAY_SIZE(syscalls) ? syscalls[number] : 0;
}
