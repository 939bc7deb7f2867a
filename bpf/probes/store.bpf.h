/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stores to shared mappings, and msync. A store is seen when it makes a clean folio dirty; after the folio was written it is
 * clean again, so that each store which makes a later write necessary is seen.
 */
#ifndef MOSTRACE_STORE_BPF_H
#define MOSTRACE_STORE_BPF_H

#include "operation.bpf.h"

/* Stands for a store where a call has its number. */
#define STORE_NUMBER CALLS_MAX

/* <linux/mm.h> */
#define VM_WRITE 0x2
#define VM_SHARED 0x8

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct___mm {
	void *mm;
};

/* From 6.6 on the order is the lowest byte; ext4 has large folios from 6.16 on. */
struct folio___order {
	unsigned long _flags_1;
};

#pragma clang attribute pop

/* Returns the open file by which the current process may store to the inode; NULL if it has no mapping for that. */
static __always_inline struct file *mapped_for_stores(struct inode *inode)
{
	struct task_struct *task = this_task();
	void *mm = BPF_CORE_READ((struct task_struct___mm *)task, mm);
	bool is_whole = true;
	struct mappings m;

	if (!mm)
		return 0;
	find_mappings(&m, inode);
#pragma unroll
	for (int i = 0; i < MAPPINGS_MAX; i++) {
		struct vm_area_struct___mapped *vma = m.all[i];

		if (!vma)
			is_whole = false;
		else if (BPF_CORE_READ(vma, vm_mm) == mm &&
			 (BPF_CORE_READ(vma, vm_flags) & (VM_WRITE | VM_SHARED)) == (VM_WRITE | VM_SHARED))
			return BPF_CORE_READ(vma, vm_file);
	}
	/* With more mappings than are read, one of the others may be it. */
	if (is_whole)
		lose_operation(LOSS_OPERATIONS_STORES);
	return 0;
}

static __always_inline __u64 folio_bytes(const struct folio_view *folio)
{
	struct folio___order *large = (void *)folio->head;
	__u64 order = 0;

	if (folio->large && bpf_core_field_exists(large->_flags_1))
		order = BPF_CORE_READ(large, _flags_1) & 0xff;
	return 1ULL << ((page_shift + order) & 63);
}

static __always_inline int store_to(__u64 page, struct inode *inode)
{
	__u32 thread = bpf_get_current_pid_tgid();
	struct folio_view folio;
	struct raw_call *call;
	struct begun *begun;
	struct file *file;

	if (!inode || !is_traced_filesystem(BPF_CORE_READ(inode, i_sb, s_dev)) ||
	    (BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFREG)
		return 0;
	begun = bpf_map_lookup_elem(&begun_calls, &thread);
	/* A call that is recorded makes it dirty, or a request. */
	if (begun && begun->number && !(shape_of(begun->number - 1) & SHAPE_READS))
		return 0;
	if (BPF_CORE_READ(this_task(), flags) & PF_IO_WORKER)
		return 0;
	file = mapped_for_stores(inode);
	if (!file)
		return 0;
	call = new_raw_call(CALL_OF_STORE);
	if (!call)
		return 0;
	view_folio(&folio, page);
	call->start_ns = call->end_ns = bpf_ktime_get_ns();
	call->result = 0;
	call->pid = thread;
	call->tgid = bpf_get_current_pid_tgid() >> 32;
	call->number = STORE_NUMBER;
	call->args[0] = folio.index << page_shift;
	call->args[1] = folio_bytes(&folio);
	tell_open(&call->files[0], &call->name[0], file, false);
	put_operation(call);
	return 0;
}

#endif
