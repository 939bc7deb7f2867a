// SPDX-License-Identifier: GPL-2.0-only
/* Tried, to know whether the kernel loads programs of this kind for this function: one that it refuses keeps all others of its object out. */
#include "kernel.bpf.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

SEC("fentry/jbd2_journal_dirty_metadata")
int tried(__u64 *ctx)
{
	return 0;
}
