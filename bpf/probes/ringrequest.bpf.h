/* SPDX-License-Identifier: GPL-2.0-only */
/* Requests to io_uring: what they are, and the files that are registered for them. */
#ifndef MOSTRACE_RINGREQUEST_BPF_H
#define MOSTRACE_RINGREQUEST_BPF_H

#include "syscall.bpf.h"

/* <linux/io_uring.h> */
enum ring_opcode {
	RING_READV = 1,
	RING_WRITEV = 2,
	RING_FSYNC = 3,
	RING_READ_FIXED = 4,
	RING_WRITE_FIXED = 5,
	RING_SYNC_FILE_RANGE = 8,
	RING_FALLOCATE = 17,
	RING_OPENAT = 18,
	RING_CLOSE = 19,
	RING_READ = 22,
	RING_WRITE = 23,
	RING_FADVISE = 24,
	RING_OPENAT2 = 28,
	RING_SPLICE = 30,
	RING_RENAMEAT = 35,
	RING_UNLINKAT = 36,
	RING_MKDIRAT = 37,
	RING_SYMLINKAT = 38,
	RING_LINKAT = 39,
	RING_FSETXATTR = 41,
	RING_SETXATTR = 42,
	RING_FTRUNCATE = 55,
	RING_READV_FIXED = 60,
	RING_WRITEV_FIXED = 61,
};
#define RING_DATASYNC 1
#define RING_FIXED_FILE 1U
#define RING_SKIP_SUCCESS (1U << 6)
/* The low bits of a registered file's pointer are flags. */
#define RING_FILE_POINTER (~7UL)
/* In place of a slot among the registered files: the kernel chooses one, and returns it. */
#define RING_SLOT_ANY (~0U)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* io_uring/io-wq.c */
struct io_wq_work {
	int cancel_seq;
};

struct io_worker {
	struct io_wq_work *cur_work;
};

struct io_cqe {
	__s32 fd;
};

struct io_uring_cqe {
	__s32 res;
};

/* io_uring/rsrc.h, io_uring/filetable.h: the registered files, from 6.13 on and before */
struct io_rsrc_node {
	unsigned long file_ptr;
};

struct io_rsrc_data {
	__u32 nr;
	struct io_rsrc_node **nodes;
};

struct io_file_table {
	struct io_rsrc_data data;
};

struct io_ring_ctx {
	struct io_file_table file_table;
};

struct io_fixed_file {
	unsigned long file_ptr;
};

struct io_file_table___plain {
	struct io_fixed_file *files;
};

struct io_ring_ctx___plain {
	struct io_file_table___plain file_table;
	__u32 nr_user_files;
};

struct io_kiocb {
	struct file *file;
	__u8 opcode;
	__u32 flags;		/* the low half, which has the flags of the submission */
	struct io_cqe cqe;
	struct io_ring_ctx *ctx;
	struct io_wq_work work;
};

/* The beginning of kinds of request: io_uring/rw.c, sync.c, truncate.c */
struct io_rw {
	struct kiocb kiocb;
	__u64 addr;
	__u32 len;
	__u32 flags;
};

struct io_sync {
	__s64 len;
	__s64 off;
	int flags;
	int mode;
};

struct io_ftrunc {
	__s64 len;
};

#pragma clang attribute pop

/* Returns a registered file of the ring, or NULL. */
static __always_inline struct file *registered_file(struct io_ring_ctx *ctx, __u32 nth)
{
	struct io_ring_ctx___plain *plain = (void *)ctx;
	struct io_rsrc_node **nodes, *node = 0;
	struct io_fixed_file *files;
	unsigned long file = 0;

	if (bpf_core_field_exists(ctx->file_table.data)) {
		nodes = BPF_CORE_READ(ctx, file_table.data.nodes);
		if (nth < BPF_CORE_READ(ctx, file_table.data.nr))
			bpf_probe_read_kernel(&node, sizeof(node), nodes + nth);
		file = node ? BPF_CORE_READ(node, file_ptr) : 0;
	} else if (bpf_core_field_exists(plain->file_table.files)) {
		files = BPF_CORE_READ(plain, file_table.files);
		if (nth < BPF_CORE_READ(plain, nr_user_files))
			bpf_probe_read_kernel(&file, sizeof(file), files + nth);
	}
	return (struct file *)(file & RING_FILE_POINTER);
}

/* Returns the file of a request that is being submitted; io_uring itself looks it up when it executes the request. */
static __always_inline struct file *submitted_file(struct io_kiocb *req)
{
	struct file *file = BPF_CORE_READ(req, file);
	__u32 fd;

	if (file || !bpf_core_field_exists(req->cqe.fd))
		return file;
	fd = BPF_CORE_READ(req, cqe.fd);
	if (BPF_CORE_READ(req, flags) & RING_FIXED_FILE)
		return registered_file(BPF_CORE_READ(req, ctx), fd);
	return open_file(fd);
}

#endif
