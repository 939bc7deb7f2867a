/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests to io_uring as the system calls that they equal, of the task that submitted them. Paths are read when a request is
 * submitted, because they are freed before it completes; what concerns its file is read when it completes.
 */
#ifndef MOSTRACE_RINGCALL_BPF_H
#define MOSTRACE_RINGCALL_BPF_H

#include "operation.bpf.h"
#include "ringrequest.bpf.h"

/* The number of the system call that a request equals, by its opcode; 0 for those that are not recorded. */
#define RING_OPCODES 64
const volatile __u16 ring_calls[RING_OPCODES];
const volatile __u32 fdatasync_number;
/* Index of the request among the arguments of the submission tracepoint, and whether completion passes a cqe. */
const volatile __u32 ring_submit_at;
const volatile bool ring_has_cqe;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct filename {
	const char *name;
};

/* The beginning of further kinds of request: io_uring/advise.c, openclose.c, fs.c, xattr.c, splice.c */
struct io_fadvise {
	__u64 offset;
	__u64 len;
	__u32 advice;
};

struct open_how {
	__u64 flags;
	__u64 mode;
};

struct io_open {
	int dfd;
	__u32 file_slot;
	struct filename *filename;
	struct open_how how;
};

struct io_close {
	int fd;
	__u32 file_slot;
};

struct io_rename {
	int old_dfd;
	int new_dfd;
	struct filename *oldpath;
	struct filename *newpath;
	int flags;
};

struct io_unlink {
	int dfd;
	int flags;
	struct filename *filename;
};

struct io_mkdir {
	int dfd;
	__u16 mode;
	struct filename *filename;
};

struct io_link {
	int old_dfd;
	int new_dfd;
	struct filename *oldpath;
	struct filename *newpath;
	int flags;
};

/* The name is a structure that begins with it. */
struct kernel_xattr_ctx {
	void *kname;
	unsigned long size;
	unsigned int flags;
};

struct io_xattr {
	struct kernel_xattr_ctx ctx;
	struct filename *filename;
};

struct io_splice {
	__s64 off_out;
	__u64 len;
};

/* 7.x: the paths are not looked up yet, which is all that matters here. */
struct delayed_filename {
	struct filename *__incomplete_filename;
};

struct io_open___delayed {
	struct delayed_filename filename;
};

struct io_unlink___delayed {
	struct delayed_filename filename;
};

struct io_mkdir___delayed {
	struct delayed_filename filename;
};

struct io_rename___delayed {
	struct delayed_filename oldpath;
	struct delayed_filename newpath;
};

struct io_link___delayed {
	struct delayed_filename oldpath;
	struct delayed_filename newpath;
};

struct io_xattr___delayed {
	struct delayed_filename filename;
};

#pragma clang attribute pop

/* A request that has not completed. */
struct begun_request {
	__u64 start_ns;
	__u64 file;		/* of a close: what it closes */
	__u32 pid;
	__u32 tgid;
	__u32 number;		/* of the system call that it equals */
	__u8 is_told;		/* what was known when it was submitted has a record */
	__u8 is_last;		/* of a close: the file has no other descriptor */
	__u16 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, __u64);
	__type(value, struct begun_request);
} begun_requests SEC(".maps");

/* Reads a field of a request of this type; 0 if the kernel has it not. */
#define RING_FIELD(type, req, ...)							\
	(bpf_core_field_exists(((struct type *)(req))->__VA_ARGS__) ?			\
		(__u64)RING_READ(type, req, __VA_ARGS__) : 0)
#define RING_READ(type, req, field)							\
	({										\
		typeof(((struct type *)0)->field) value_;				\
		bpf_core_read(&value_, sizeof(value_), &((struct type *)(req))->field);	\
		value_;									\
	})
#define RING_NAME(type, req, field)							\
	((struct filename *)(bpf_core_field_exists(((struct type *)(req))->field) ?	\
		RING_READ(type, req, field) :						\
		(struct filename *)RING_FIELD(type##___delayed, req, field.__incomplete_filename)))

static __always_inline struct file *file_to_close(struct io_kiocb *req)
{
	__u32 slot = RING_FIELD(io_close, req, file_slot);

	if (slot)
		return registered_file(BPF_CORE_READ(req, ctx), slot - 1);
	return open_file(RING_FIELD(io_close, req, fd));
}

static __always_inline struct file *opened_by(struct io_kiocb *req, __s64 result)
{
	__u32 slot = RING_FIELD(io_open, req, file_slot);

	if (!slot)
		return open_file(result);
	return registered_file(BPF_CORE_READ(req, ctx), slot == RING_SLOT_ANY ? result : slot - 1);
}

static __always_inline void tell_filename(struct raw_name *name, struct filename *path)
{
	const char *text = path ? BPF_CORE_READ(path, name) : 0;
	long len = bpf_probe_read_kernel_str(name->text, NAME_BYTES, text);

	name->flags |= RAW_NAME_THERE;
	if (len <= 0 || len >= NAME_BYTES)
		name->flags |= RAW_NAME_CUT;
	else
		name->text_len = len - 1;
}

static __always_inline void tell_path_at(struct raw_name *name, __s32 folder, struct filename *path)
{
	tell_filename(name, path);
	if (!name->text_len || name->text[0] != '/')
		tell_start(name, folder);
}

/* Tells the paths of a request. */
static __always_inline void tell_paths(struct raw_call *call, struct io_kiocb *req, __u8 opcode)
{
	struct raw_name *path = &call->name[0], *other = &call->name[1];
	struct filename *of[2] = {};
	__s32 at[2] = { AT_FDCWD, AT_FDCWD };

	switch (opcode) {
	case RING_OPENAT:
	case RING_OPENAT2:
		at[0] = RING_FIELD(io_open, req, dfd);
		of[0] = RING_NAME(io_open, req, filename);
		break;
	case RING_UNLINKAT:
		at[0] = RING_FIELD(io_unlink, req, dfd);
		of[0] = RING_NAME(io_unlink, req, filename);
		break;
	case RING_MKDIRAT:
		at[0] = RING_FIELD(io_mkdir, req, dfd);
		of[0] = RING_NAME(io_mkdir, req, filename);
		break;
	case RING_RENAMEAT:
		at[0] = RING_FIELD(io_rename, req, old_dfd);
		at[1] = RING_FIELD(io_rename, req, new_dfd);
		of[0] = RING_NAME(io_rename, req, oldpath);
		of[1] = RING_NAME(io_rename, req, newpath);
		break;
	case RING_LINKAT:
		at[0] = RING_FIELD(io_link, req, old_dfd);
		at[1] = RING_FIELD(io_link, req, new_dfd);
		of[0] = RING_NAME(io_link, req, oldpath);
		of[1] = RING_NAME(io_link, req, newpath);
		break;
	case RING_SYMLINKAT:
		at[0] = RING_FIELD(io_link, req, new_dfd);
		of[0] = RING_NAME(io_link, req, newpath);
		tell_filename(other, RING_NAME(io_link, req, oldpath));
		break;
	case RING_SETXATTR:
		of[0] = RING_NAME(io_xattr, req, filename);
		/* fallthrough */
	case RING_FSETXATTR:
		tell_filename(other, 0);
		if (bpf_core_field_exists(((struct io_xattr *)req)->ctx.kname)) {
			long len = bpf_probe_read_kernel_str(other->text, NAME_BYTES,
							     RING_READ(io_xattr, req, ctx.kname));

			if (len > 0 && len < NAME_BYTES) {
				other->text_len = len - 1;
				other->flags = RAW_NAME_THERE;
			}
		}
		break;
	}
	if (of[0])
		tell_path_at(path, at[0], of[0]);
	if (opcode == RING_LINKAT || opcode == RING_SETXATTR)
		tell_named(call, at[0]);
	if (of[1])
		tell_path_at(other, at[1], of[1]);
}

struct iovec {
	__u64 base;
	__u64 len;
};

#define RING_BUFFERS_MAX 8

/* Returns the sum of the lengths of the buffers of a request that is being submitted; 0 if they are too many. */
static __always_inline __u64 buffers_length(struct io_kiocb *req)
{
	__u32 count = RING_FIELD(io_rw, req, len);
	__u64 at = RING_FIELD(io_rw, req, addr), sum = 0;
	struct iovec buffer;

	if (count > RING_BUFFERS_MAX) {
		lose_operation(LOSS_OPERATIONS_TASKS);
		return 0;
	}
	for (__u32 i = 0; i < RING_BUFFERS_MAX; i++) {
		if (i >= count || bpf_probe_read_user(&buffer, sizeof(buffer), (void *)(at + i * sizeof(buffer))))
			break;
		sum += buffer.len;
	}
	return sum;
}

static __always_inline bool has_buffers(__u8 opcode)
{
	return opcode == RING_READV || opcode == RING_WRITEV || opcode == RING_READV_FIXED ||
	       opcode == RING_WRITEV_FIXED;
}

/* Tells the place of a read or write: where the position was before those bytes, which have moved already. */
static __always_inline void tell_place(struct raw_call *call, struct io_kiocb *req, __u8 opcode, struct file *file)
{
	__s64 position = RING_FIELD(io_rw, req, kiocb.ki_pos);
	__u64 moved = call->result > 0 ? call->result : 0;

	if (call->stage != STAGE_RETURNED) {
		/* It has not begun; the offset -1 means the file's position. */
		call->args[2] = has_buffers(opcode) ? buffers_length(req) : RING_FIELD(io_rw, req, len);
		call->args[3] = position < 0 ? BPF_CORE_READ(file, f_pos) : position;
		return;
	}
	call->args[2] = has_buffers(opcode) ? moved : RING_FIELD(io_rw, req, len);
	call->args[3] = position - moved;
}

/* Tells the arguments as they are in the system call that the request equals. */
static __always_inline void tell_arguments(struct raw_call *call, struct io_kiocb *req, __u8 opcode, struct file *file)
{
	switch (opcode) {
	case RING_READ:
	case RING_READV:
	case RING_READ_FIXED:
	case RING_READV_FIXED:
	case RING_WRITE:
	case RING_WRITEV:
	case RING_WRITE_FIXED:
	case RING_WRITEV_FIXED:
		tell_place(call, req, opcode, file);
		break;
	case RING_SYNC_FILE_RANGE:
		call->args[1] = RING_FIELD(io_sync, req, off);
		call->args[2] = RING_FIELD(io_sync, req, len);
		call->args[3] = RING_FIELD(io_sync, req, flags);
		break;
	case RING_FALLOCATE:
		call->args[1] = RING_FIELD(io_sync, req, mode);
		call->args[2] = RING_FIELD(io_sync, req, off);
		call->args[3] = RING_FIELD(io_sync, req, len);
		break;
	case RING_FADVISE:
		call->args[1] = RING_FIELD(io_fadvise, req, offset);
		call->args[2] = RING_FIELD(io_fadvise, req, len);
		call->args[3] = RING_FIELD(io_fadvise, req, advice);
		break;
	case RING_FTRUNCATE:
		call->args[1] = RING_FIELD(io_ftrunc, req, len);
		break;
	case RING_OPENAT:
	case RING_OPENAT2:
		call->args[2] = RING_FIELD(io_open, req, how.flags);
		call->args[3] = RING_FIELD(io_open, req, how.mode);
		break;
	case RING_RENAMEAT:
		call->args[4] = RING_FIELD(io_rename, req, flags);
		break;
	case RING_LINKAT:
		call->args[4] = RING_FIELD(io_link, req, flags);
		break;
	case RING_UNLINKAT:
		call->args[2] = RING_FIELD(io_unlink, req, flags);
		break;
	case RING_MKDIRAT:
		call->args[2] = RING_FIELD(io_mkdir, req, mode);
		break;
	case RING_FSETXATTR:
	case RING_SETXATTR:
		call->args[3] = RING_FIELD(io_xattr, req, ctx.size);
		call->args[4] = RING_FIELD(io_xattr, req, ctx.flags);
		break;
	case RING_SPLICE: {
		__s64 to = RING_FIELD(io_splice, req, off_out);

		call->args[4] = RING_FIELD(io_splice, req, len);
		/* It has been moved on, as the system call moves what its argument points to. */
		if (to >= 0)
			call->offsets[0] = to;
		break;
	}
	}
}

static __always_inline __u32 equal_call(struct io_kiocb *req, __u8 opcode)
{
	if (opcode == RING_FSYNC && RING_FIELD(io_sync, req, flags) & RING_DATASYNC)
		return fdatasync_number;
	if (opcode >= RING_OPCODES)
		return 0;
	barrier_var(opcode);
	return ring_calls[opcode & (RING_OPCODES - 1)];
}

static __always_inline void tell_request(struct raw_call *call, const struct begun_request *begun, __u64 request)
{
	call->start_ns = begun->start_ns;
	call->end_ns = bpf_ktime_get_ns();
	call->pid = begun->pid;
	call->tgid = begun->tgid;
	call->number = begun->number;
	call->request = request;
	for (int i = 0; i < 8; i++)
		call->args[i] = 0;
}

/* Tells what is known of a request when it is submitted. Returns false if it is about another filesystem. */
static __always_inline bool tell_submitted(const struct begun_request *begun, struct io_kiocb *req, __u8 opcode, bool silent)
{
	struct raw_call *call = new_raw_call(CALL_OF_SUBMISSION);
	__u32 shape = shape_of(begun->number);
	struct file *file = 0;

	if (!call)
		return false;
	call->result = 0;
	call->stage = silent ? STAGE_SILENT : STAGE_SUBMITTED;
	tell_request(call, begun, (__u64)req);
	if (SHAPE_FD(shape)) {
		file = submitted_file(req);
		if (!is_ours(file))
			return false;
		tell_open(&call->files[0], &call->name[0], file, false);
	}
	tell_arguments(call, req, opcode, file);
	tell_paths(call, req, opcode);
	if (!file && !may_be_ours(&call->name[0]) && !may_be_ours(&call->name[1]))
		return false;
	put_operation(call);
	return true;
}

/* A close reports nothing if it succeeds, as it will, so it is recorded when it is submitted. */
static __always_inline void tell_closed(const struct begun_request *begun, __u64 request, __s64 result)
{
	struct raw_call *call;
	__u64 address = begun->file;

	if (!begun->is_last || result < 0)
		return;
	call = new_raw_call(CALL_OF_COMPLETION);
	if (!call)
		return;
	call->result = 0;
	tell_request(call, begun, request);
	call->files[0].address = address;
	bpf_map_delete_elem(&told_files, &address);
	put_operation(call);
}

static __always_inline int begin_request(struct io_kiocb *req)
{
	__u8 opcode = BPF_CORE_READ(req, opcode);
	bool silent = BPF_CORE_READ(req, flags) & RING_SKIP_SUCCESS;
	__u64 key = (__u64)req, ids = bpf_get_current_pid_tgid();
	struct begun_request begun = { .pid = ids, .tgid = ids >> 32, .number = equal_call(req, opcode) };
	__u32 shape = shape_of(begun.number);

	/* The request that had this address before may have reported no end. */
	bpf_map_delete_elem(&begun_requests, &key);
	if (!begun.number || !shape)
		return 0;
	begun.start_ns = bpf_ktime_get_ns();
	if (shape & SHAPE_CLOSES) {
		struct file *file = file_to_close(req);

		if (!is_ours(file))
			return 0;
		begun.file = (__u64)file;
		begun.is_last = is_last_descriptor(file);
		if (silent) {
			tell_closed(&begun, key, 0);
			return 0;
		}
	} else if (silent || SHAPE_PATH(shape) || SHAPE_PATH2(shape)) {
		if (!tell_submitted(&begun, req, opcode, silent))
			return 0;
		begun.is_told = true;
	}
	if (bpf_map_update_elem(&begun_requests, &key, &begun, BPF_ANY))
		lose_operation(LOSS_OPERATIONS_TASKS);
	return 0;
}

static __always_inline int end_request(struct io_kiocb *req, __s64 result)
{
	__u64 key = (__u64)req;
	struct begun_request *found = bpf_map_lookup_elem(&begun_requests, &key), begun;
	struct raw_call *call;
	struct file *file;
	__u32 shape;

	if (!found)
		return 0;
	begun = *found;
	bpf_map_delete_elem(&begun_requests, &key);
	shape = shape_of(begun.number);
	if (shape & SHAPE_CLOSES) {
		tell_closed(&begun, key, result);
		return 0;
	}
	call = new_raw_call(CALL_OF_COMPLETION);
	if (!call)
		return 0;
	call->result = result;
	tell_request(call, &begun, key);
	if (begun.is_told) {
		call->stage = STAGE_COMPLETED;
		if (shape & SHAPE_OPENS && result >= 0) {
			file = opened_by(req, result);
			if (is_ours(file))
				tell_open(&call->files[0], &call->name[0], file, true);
		}
	} else {
		file = BPF_CORE_READ(req, file);
		if (!is_ours(file))
			return 0;
		tell_open(&call->files[0], &call->name[0], file, false);
		tell_arguments(call, req, BPF_CORE_READ(req, opcode), file);
	}
	put_operation(call);
	return 0;
}

#endif
