// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loaded as a trial, to find out whether the kernel accepts programs of this kind for this function: a program that
 * it rejects keeps all others in its object from being loaded.
 */
#include "kernel.bpf.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

SEC("fentry/jbd2_journal_dirty_metadata")
int tried(__u64 *ctx)
{
	return 0;
}
