/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts the descriptors that lead to an open file. Its references count descriptors and mappings alike, and programs that read a
 * file through a mapping close its descriptor first.
 */
#ifndef MOSTRACE_DESCRIPTORS_BPF_H
#define MOSTRACE_DESCRIPTORS_BPF_H

#include "compat.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* Before 6.13. */
struct file___count {
	struct {
		__s64 counter;
	} f_count;
};

/* From 6.13 on; 0 is one reference. */
struct file___ref {
	struct {
		struct {
			__s64 counter;
		} refcnt;
	} f_ref;
};

struct rb_node___mapped {
	struct rb_node___mapped *rb_right;
	struct rb_node___mapped *rb_left;
};

struct vm_area_struct___mapped {
	void *vm_mm;
	unsigned long vm_flags;
	struct file *vm_file;
	struct {
		struct rb_node___mapped rb;
	} shared;
};

struct address_space___mapped {
	struct {
		struct {
			struct rb_node___mapped *rb_node;
		} rb_root;
	} i_mmap;
};

struct inode___mapped {
	struct address_space___mapped *i_mapping;
};

#pragma clang attribute pop

/* The mappings of an inode that are read: those in the upper three levels of its tree. */
#define MAPPINGS_MAX 7

struct mappings {
	struct vm_area_struct___mapped *all[MAPPINGS_MAX];	/* NULL where there is none */
};

static __always_inline void find_mappings(struct mappings *m, struct inode *of)
{
	struct inode___mapped *inode = (void *)of;
	struct rb_node___mapped *nodes[MAPPINGS_MAX] = {};
	struct vm_area_struct___mapped *vma = 0;

	nodes[0] = BPF_CORE_READ(inode, i_mapping, i_mmap.rb_root.rb_node);
#pragma unroll
	for (int i = 0; i < MAPPINGS_MAX; i++) {
		m->all[i] = 0;
		if (!nodes[i])
			continue;
		m->all[i] = (void *)nodes[i] - bpf_core_field_offset(vma->shared.rb);
		if (2 * i + 2 < MAPPINGS_MAX) {
			struct rb_node___mapped *node = nodes[i];

			nodes[2 * i + 1] = BPF_CORE_READ(node, rb_left);
			nodes[2 * i + 2] = BPF_CORE_READ(node, rb_right);
		}
	}
}

/*
 * Returns how many of the mappings of its inode are this open file's, at least. A function of its own, which the verifier
 * walks once.
 */
__noinline int mappings_of(__u64 address)
{
	struct file *file = (void *)address;
	struct mappings m;
	int count = 0;

	find_mappings(&m, BPF_CORE_READ(file, f_inode));
#pragma unroll
	for (int i = 0; i < MAPPINGS_MAX; i++) {
		struct vm_area_struct___mapped *vma = m.all[i];

		count += vma && BPF_CORE_READ(vma, vm_file) == file;
	}
	return count;
}

static __always_inline __s64 references_of(struct file *file)
{
	struct file___count *counted = (void *)file;
	struct file___ref *referenced = (void *)file;

	if (bpf_core_field_exists(referenced->f_ref))
		return BPF_CORE_READ(referenced, f_ref.refcnt.counter) + 1;
	return BPF_CORE_READ(counted, f_count.counter);
}

/* Returns true if no second descriptor leads to the file. With many mappings of one file this may be false for its last one. */
static __always_inline bool is_last_descriptor(struct file *file)
{
	__s64 references = references_of(file);

	return references == 1 || references - mappings_of((__u64)file) == 1;
}

#endif
