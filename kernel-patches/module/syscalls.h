/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_SYSCALLS_H
#define MOSTRACE_SYSCALLS_H

#include <linux/types.h>

/* enum mostrace_call_kind in the low bits, and the meaning of the arguments. */
#define MOSTRACE_SYSCALL_KIND	0x1f
#define MOSTRACE_SYSCALL_INSIDE	0x20	/* reported only with handles, not recorded itself */
#define MOSTRACE_SYSCALL_PATH	0x40	/* its first argument is not a descriptor */
#define MOSTRACE_SYSCALL_AT	0x80	/* its fourth argument is an offset */
#define MOSTRACE_SYSCALL_VECTOR	0x100	/* its second argument is an array of buffers */
#define MOSTRACE_SYSCALL_RWF	0x200	/* its sixth argument has flags RWF_… */

u16 mostrace_syscall(long number);

#endif
