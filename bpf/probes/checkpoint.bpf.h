/* SPDX-License-Identifier: GPL-2.0-only */
/* The phase of f2fs's checkpoint. */
#ifndef MOSTRACE_CHECKPOINT_BPF_H
#define MOSTRACE_CHECKPOINT_BPF_H

#include "compat.bpf.h"

/*
 * enum f2fs_cp_phase in include/trace/events/f2fs.h: the third argument of f2fs_write_checkpoint, which is a string
 * in older kernels.
 */
enum checkpoint_phase {
	CP_PHASE_START_BLOCK_OPS,
	CP_PHASE_FINISH_BLOCK_OPS,
	CP_PHASE_FINISH_CHECKPOINT,
};

static __always_inline __u32 checkpoint_phase(__u64 argument)
{
	char text[8] = { };

	if (argument <= CP_PHASE_FINISH_CHECKPOINT)
		return argument;
	/* "start ...", "finish b...", "finish c..." */
	bpf_probe_read_kernel(text, sizeof(text), (void *)argument);
	if (text[0] == 's')
		return CP_PHASE_START_BLOCK_OPS;
	return text[7] == 'c' ? CP_PHASE_FINISH_CHECKPOINT : CP_PHASE_FINISH_BLOCK_OPS;
}

#endif
