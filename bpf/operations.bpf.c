// SPDX-License-Identifier: GPL-2.0-only
/* The probes for operations: every call that may change the traced filesystem, for a replay. */
#include "store.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* (regs, number) */
SEC("tp_btf/sys_enter")
int operation_enter(__u64 *ctx)
{
	return begin_operation((struct pt_regs *)ctx[0], ctx[1]);
}

/* (regs, result) */
SEC("tp_btf/sys_exit")
int operation_exit(__u64 *ctx)
{
	return end_operation((struct pt_regs *)ctx[0], ctx[1]);
}

/* Ahead of the end of its descriptors. */
SEC("tp_btf/sched_process_exit")
int operation_process_exit(void *ctx)
{
	return end_of_process();
}

/* (folio, mapping); before 5.18 (page, mapping). User space loads the program that the kernel supports. */
SEC("raw_tp/writeback_dirty_folio")
int operation_dirty_folio(__u64 *ctx)
{
	return store_to(ctx[0], BPF_CORE_READ((struct address_space *)ctx[1], host));
}

SEC("raw_tp/writeback_dirty_page")
int operation_dirty_page(__u64 *ctx)
{
	return store_to(ctx[0], BPF_CORE_READ((struct address_space *)ctx[1], host));
}
