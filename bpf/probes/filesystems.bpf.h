/* SPDX-License-Identifier: GPL-2.0-only */
/* The filesystems on what is traced. */
#ifndef MOSTRACE_FILESYSTEMS_BPF_H
#define MOSTRACE_FILESYSTEMS_BPF_H

#include "compat.bpf.h"

#define FILESYSTEMS_MAX 32

/* The numbers (s_dev) of the traced device, its partitions and the devices mapped onto it; filled in by user space. */
const volatile struct {
	__u32 count;
	__u32 devs[FILESYSTEMS_MAX];
} filesystems;

static __always_inline bool is_traced_filesystem(__u32 s_dev)
{
	for (__u32 i = 0; i < FILESYSTEMS_MAX; i++) {
		if (i >= filesystems.count)
			break;
		if (filesystems.devs[i] == s_dev)
			return true;
	}
	return false;
}

#endif
