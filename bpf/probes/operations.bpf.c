// SPDX-License-Identifier: GPL-2.0-only
/* The probes for operations: every call that may change the traced filesystem, for a replay. */
#include "ringcall.bpf.h"
#include "store.bpf.h"
#include "target.bpf.h"

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

/* (task, old_pid, bprm) */
SEC("tp_btf/sched_process_exec")
int operation_process_exec(__u64 *ctx)
{
	return end_of_exec(ctx[1]);
}

/* From 6.4 on; earlier kernels have io_uring_submit_sqe. */
SEC("raw_tp/io_uring_submit_req")
int operation_ring_submit_req(__u64 *ctx)
{
	return begin_request(ARG(ctx, ring_submit_at));
}

SEC("raw_tp/io_uring_submit_sqe")
int operation_ring_submit_sqe(__u64 *ctx)
{
	return begin_request(ARG(ctx, ring_submit_at));
}

/* (ring, request, cqe); before 6.15 (ring, request, user_data, result, ...) */
SEC("raw_tp/io_uring_complete")
int operation_ring_complete(__u64 *ctx)
{
	__s32 result;

	if (ring_has_cqe)
		result = BPF_CORE_READ((struct io_uring_cqe *)ctx[2], res);
	else
		result = ctx[3];
	return end_request((struct io_kiocb *)ctx[1], result);
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
