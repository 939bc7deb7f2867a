/* SPDX-License-Identifier: GPL-2.0-only */
/* The file that is mapped at an address of the current process. */
#ifndef MOSTRACE_AREA_BPF_H
#define MOSTRACE_AREA_BPF_H

#include "compat.bpf.h"
#include "task.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct rb_node___area {
	struct rb_node___area *rb_right;
	struct rb_node___area *rb_left;
};

/* Before 6.1 the mappings of a process are in a tree; before 5.17 there is no bpf_find_vma. */
struct mm_struct___tree {
	struct {
		struct rb_node___area *rb_node;
	} mm_rb;
};

struct task_struct___tree {
	struct mm_struct___tree *mm;
};

struct vm_area_struct___placed {
	unsigned long vm_start;
	unsigned long vm_end;
	unsigned long vm_pgoff;
	struct file *vm_file;
	struct rb_node___area vm_rb;
};

#pragma clang attribute pop

struct area {
	__u64 address;
	struct file *file;	/* NULL if none is mapped there */
	__u64 offset;		/* of the address in the file */
};

static long see_area(struct task_struct *task, struct vm_area_struct___placed *vma, struct area *area)
{
	area->file = BPF_CORE_READ(vma, vm_file);
	area->offset = area->address - BPF_CORE_READ(vma, vm_start) + (BPF_CORE_READ(vma, vm_pgoff) << page_shift);
	return 0;
}

#ifdef MOSTRACE_LOOPLESS
/* A tree of this height has room for as many mappings as a process may have. */
#define AREAS_HEIGHT 32

/* Nothing is locked: a mapping that another task moves meanwhile may not be found. */
static __always_inline bool find_area(struct task_struct *task, struct area *area)
{
	struct mm_struct___tree *mm = BPF_CORE_READ((struct task_struct___tree *)task, mm);
	struct vm_area_struct___placed *vma = 0;
	struct rb_node___area *node;

	if (!bpf_core_field_exists(mm->mm_rb) || !bpf_core_field_exists(vma->vm_rb))
		return false;
	node = BPF_CORE_READ(mm, mm_rb.rb_node);
	for (int i = 0; i < AREAS_HEIGHT && node; i++) {
		vma = (void *)node - bpf_core_field_offset(vma->vm_rb);
		if (area->address >= BPF_CORE_READ(vma, vm_end)) {
			node = BPF_CORE_READ(node, rb_right);
		} else if (area->address < BPF_CORE_READ(vma, vm_start)) {
			node = BPF_CORE_READ(node, rb_left);
		} else {
			see_area(task, vma, area);
			return true;
		}
	}
	/* There is nothing at the address, which is an error of the caller. */
	return true;
}
#else
/* Returns false if it is refused, because another task changes the mappings. */
static __always_inline bool find_area(struct task_struct *task, struct area *area)
{
	return bpf_find_vma(task, area->address, see_area, area, 0) != -EBUSY;
}
#endif

#endif
