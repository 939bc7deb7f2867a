/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * System calls that may change the traced filesystem, as they were made: their arguments, the open files that their
 * descriptors lead to, and the names that they were given. User space makes operations of them.
 */
#ifndef MOSTRACE_OPERATION_BPF_H
#define MOSTRACE_OPERATION_BPF_H

#include "area.bpf.h"
#include "descriptors.bpf.h"
#include "filesystems.bpf.h"
#include "path.bpf.h"
#include "ring.bpf.h"
#include "syscall.bpf.h"

/* User space's description of each call number: where its arguments are (0: it has none). An argument's place counts from 1. */
#define SHAPE_FD(shape) ((shape) & 7)			/* the descriptor of the file that it is about */
#define SHAPE_FD2(shape) ((shape) >> 3 & 7)		/* a second descriptor */
#define SHAPE_PATH(shape) ((shape) >> 6 & 7)
#define SHAPE_PATH2(shape) ((shape) >> 9 & 7)
#define SHAPE_OFFSET(shape) ((shape) >> 12 & 7)		/* a pointer to the offset in the first file */
#define SHAPE_OFFSET2(shape) ((shape) >> 15 & 7)	/* a pointer to the offset in the second */
#define SHAPE_AT (1U << 18)		/* in front of each path is the descriptor of its folder */
#define SHAPE_OPENS (1U << 19)		/* it returns a descriptor */
#define SHAPE_CLOSES (1U << 20)
#define SHAPE_TEXT (1U << 21)		/* the second path is a text that names nothing */
#define SHAPE_CLONES (1U << 22)		/* ioctl: only some commands matter */
#define SHAPE_HOW (1U << 23)		/* openat2: the flags are in a structure */
#define SHAPE_ALL (1U << 24)		/* it concerns all filesystems */
#define SHAPE_MAPPED (1U << 25)		/* the first argument is an address in a mapping */
#define SHAPE_SUBMITS (1U << 26)	/* it executes requests, which are recorded; it is none itself */
#define SHAPE_CLOSES_ALL (1U << 27)	/* it closes a range of descriptors: close_range */
#define SHAPE_EXECUTES (1U << 28)	/* it closes descriptors if it succeeds: execve */
#define SHAPE_READS (1U << 29)		/* it changes no file, but may store to a mapping */

const volatile __u32 call_shapes[CALLS_MAX];
const volatile __u32 close_number;

#define NAME_BYTES 512

/* An open file. User space mirrors these structures (source/bpf/raw_call.rs). */
struct raw_file {
	__u64 address;		/* of the struct file, or 0 */
	__u64 ino;
	__u64 size;
	__u64 position;
	__u32 generation;
	__u32 s_dev;
	__u32 flags;		/* f_flags */
	__u16 mode;		/* i_mode */
	__u8 is_new;		/* it was not reported before, and the name in its place is its path */
	__u8 created;
};

enum raw_name_flags {
	RAW_NAME_THERE = 1,	/* there is a name */
	RAW_NAME_OURS = 2,	/* its folder is on the traced filesystem */
	RAW_NAME_CUT = 4,	/* the folder's path or the text is not whole */
};

/* A path: a folder's, from the filesystem's root ("name/folder/", the last first), and what the caller wrote. */
struct raw_name {
	__u16 folder_len;
	__u16 text_len;
	__u16 flags;
	__u16 pad;
	char folder[MOSTRACE_NAME_MAX];
	char text[NAME_BYTES];
};

enum raw_stage {
	STAGE_RETURNED,		/* the whole call, which has returned */
	STAGE_SUBMITTED,	/* a request to io_uring; another record of it reports its end */
	STAGE_SILENT,		/* likewise, but only its failure is reported */
	STAGE_COMPLETED,	/* the end of a request that was reported */
};

struct raw_call {
	__u64 start_ns;
	__u64 end_ns;
	__s64 result;
	__u64 args[8];
	__u64 offsets[2];
	__u64 request;		/* of io_uring: its address */
	__u32 stage;		/* enum raw_stage */
	__u32 pid;
	__u32 tgid;
	__u32 number;
	__u32 names;		/* how many of the names follow */
	__u32 pad;
	struct raw_file files[2];
	struct raw_name name[2];
};

_Static_assert(sizeof(struct raw_file) == 48, "raw_file");
_Static_assert(sizeof(struct raw_name) == 776, "raw_name");
_Static_assert(sizeof(struct raw_call) == 232 + 2 * 776, "raw_call");

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct fs_struct {
	struct path pwd;
};

struct task_struct___fs {
	struct fs_struct *fs;
};

struct task_struct___files {
	struct files_struct___shared *files;
};

struct fdtable___closing {
	unsigned int max_fds;
	struct file **fd;
	unsigned long *close_on_exec;
};

struct files_struct___shared {
	struct {
		int counter;
	} count;
	struct fdtable___closing *fdt;
};

struct inode___sized {
	__s64 i_size;
};

#pragma clang attribute pop

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} operations SEC(".maps");

/* The names are those in the manifest. */
enum operations_loss {
	LOSS_OPERATIONS_RING,	/* calls that found the ring full */
	LOSS_OPERATIONS_TASKS,	/* calls that could not be remembered until they returned */
	LOSS_OPERATIONS_STORES,	/* stores and msyncs whose mapping was not found */
	LOSS_OPERATIONS_MAX,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LOSS_OPERATIONS_MAX);
	__type(key, __u32);
	__type(value, __u64);
} operations_lost SEC(".maps");

static __always_inline void lose_operation(__u32 what)
{
	__u64 *count = bpf_map_lookup_elem(&operations_lost, &what);

	if (count)
		__sync_fetch_and_add(count, 1);
}

/* <uapi/asm-generic/errno-base.h> */

/* A call that has not returned. An entry stays as long as there is room; its number is then 0. */
struct begun {
	__u64 start_ns;
	__u64 first;		/* its first argument, in whose place some machines put the result */
	__u64 file;		/* the open file of its descriptor, or of its mapping */
	__u64 offset;		/* where an address lies in the file of its mapping */
	__u32 number;		/* + 1 */
	__u32 is_last;		/* no other descriptor leads to that file */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, __u32);
	__type(value, struct begun);
} begun_calls SEC(".maps");

/* The open files that were reported, by their address, which another file may have later. */
struct told_file {
	__u64 ino;
	__u32 generation;
	__u32 s_dev;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, __u64);
	__type(value, struct told_file);
} told_files SEC(".maps");

/* Each program has its own, because it may be preempted. */
enum raw_call_of { CALL_OF_RETURN, CALL_OF_STORE, CALL_OF_SUBMISSION, CALL_OF_COMPLETION, CALL_OF_CLOSE, CALLS_OF };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CALLS_OF);
	__type(key, __u32);
	__type(value, struct raw_call);
} raw_calls SEC(".maps");

static __always_inline bool is_of_32_bits(struct task_struct *task)
{
	struct task_struct___x86 *x86 = (void *)task;

	return bpf_core_field_exists(x86->thread_info.status) && BPF_CORE_READ(x86, thread_info.status) & TS_COMPAT;
}

static __always_inline bool is_ours(struct file *file)
{
	return file && is_traced_filesystem(BPF_CORE_READ(file, f_inode, i_sb, s_dev));
}

static __always_inline __u32 shape_of(long number)
{
	if (number < 0 || number >= CALLS_MAX)
		return 0;
	/* As in argument_of. */
	barrier_var(number);
	return call_shapes[number & (CALLS_MAX - 1)];
}

static __always_inline __u64 tell_closed_by_exec(void);
static __always_inline void tell_closed_range(__u32 first, __u32 last);

/* <linux/close_range.h>: the table is copied first, or the descriptors are only marked */
#define CLOSE_RANGE_OTHERWISE 6

static __always_inline int begin_operation(struct pt_regs *regs, long number)
{
	struct task_struct *task = this_task();
	__u32 thread = bpf_get_current_pid_tgid(), shape = shape_of(number);
	struct begun begun = { .number = number + 1 };
	struct area area = {};
	struct file *file = 0;

	if (!shape || is_of_32_bits(task))
		return 0;
	if (shape & SHAPE_CLOSES_ALL) {
		if (!(call_argument(regs, 2) & CLOSE_RANGE_OTHERWISE))
			tell_closed_range(call_argument(regs, 0), call_argument(regs, 1));
		return 0;
	}
	if (SHAPE_FD(shape)) {
		file = open_file(call_argument(regs, SHAPE_FD(shape) - 1));
		begun.file = (__u64)file;
		if (!is_ours(file))
			begun.number = 0;
	}
	area.address = begun.first = call_argument(regs, 0);
	if (shape & SHAPE_MAPPED) {
		if (!find_area(task, &area))
			lose_operation(LOSS_OPERATIONS_STORES);
		begun.file = (__u64)area.file;
		begun.offset = area.offset;
		if (!is_ours(area.file))
			begun.number = 0;
	}
	if (shape & SHAPE_EXECUTES) {
		begun.file = tell_closed_by_exec();
		if (!begun.file)
			begun.number = 0;
	}
	if (begun.number) {
		begun.start_ns = bpf_ktime_get_ns();
		begun.is_last = file && shape & SHAPE_CLOSES && is_last_descriptor(file);
	} else if (!bpf_map_lookup_elem(&begun_calls, &thread)) {
		return 0;
	}
	if (bpf_map_update_elem(&begun_calls, &thread, &begun, BPF_ANY))
		lose_operation(LOSS_OPERATIONS_TASKS);
	return 0;
}

/* Tells a dentry's path. */
static __always_inline void tell_folder(struct raw_name *name, struct dentry *dentry)
{
	struct called_path *p;
	__u32 zero = 0;
	__u64 sum;

	name->flags |= RAW_NAME_THERE;
	if (!is_traced_filesystem(BPF_CORE_READ(dentry, d_inode, i_sb, s_dev)))
		return;
	name->flags |= RAW_NAME_OURS;
	p = bpf_map_lookup_elem(&called_paths, &zero);
	if (!p)
		return;
	p->len = 0;
	p->root = BPF_CORE_READ(dentry, d_inode, i_sb, s_root);
	sum = climb_called(p, dentry, true);
	if (!sum || climb_called(p, dentry, false) != sum) {
		name->flags |= RAW_NAME_CUT;
		return;
	}
	name->folder_len = p->len & (MOSTRACE_NAME_MAX - 1);
	bpf_probe_read_kernel(name->folder, name->folder_len & (MOSTRACE_NAME_MAX - 1), names_of(p));
}

static __always_inline void tell_text(struct raw_name *name, __u64 address)
{
	long len = bpf_probe_read_user_str(name->text, NAME_BYTES, (void *)address);

	name->flags |= RAW_NAME_THERE;
	if (len <= 0 || len >= NAME_BYTES)
		name->flags |= RAW_NAME_CUT;
	else
		name->text_len = len - 1;
}

/* AT_FDCWD of <linux/fcntl.h> */
#define AT_FDCWD (-100)

/* Tells the folder that a relative path counts from: the working directory, or a descriptor's. */
static __always_inline void tell_start(struct raw_name *name, __s32 folder)
{
	struct task_struct *task = this_task();
	struct dentry *dentry;
	struct file *file;

	if (folder == AT_FDCWD) {
		dentry = BPF_CORE_READ((struct task_struct___fs *)task, fs, pwd.dentry);
	} else {
		file = open_file(folder);
		if (!file)
			return;
		dentry = BPF_CORE_READ(file, f_path.dentry);
	}
	tell_folder(name, dentry);
}

/* Returns an argument. The compiler must not drop the bound, without which verifiers before 6.12 refuse it. */
static __always_inline __u64 argument_of(const struct raw_call *call, __u32 at)
{
	barrier_var(at);
	return call->args[at & 7];
}

/* Tells a path that was an argument, and the folder that it counts from unless it is absolute. */
static __always_inline void tell_path(struct raw_call *call, struct raw_name *name, __u32 at, __u32 shape)
{
	__s32 folder = shape & SHAPE_AT ? argument_of(call, at - 1) : AT_FDCWD;
	__u64 address = argument_of(call, at);

	/* Without a path the descriptor itself is meant (utimensat). */
	if (address) {
		tell_text(name, address);
		if (name->text_len && name->text[0] == '/')
			return;
	}
	tell_start(name, folder);
}

/* FMODE_CREATED of <linux/fs.h> */
#define FMODE_CREATED 0x100000

/* __O_TMPFILE of <asm-generic/fcntl.h> */
#define O_TMPFILE 020000000

/*
 * Tells where an open file lies. One that was made without a name keeps a number for a name; when it has just been opened, its
 * folder is told. One whose names were removed has no path.
 */
static __always_inline void tell_path_of(struct raw_name *name, struct file *file, bool is_opened)
{
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
	bool was_nameless = BPF_CORE_READ(file, f_flags) & O_TMPFILE;

	if (was_nameless && is_opened)
		tell_folder(name, BPF_CORE_READ(dentry, d_parent));
	else if (was_nameless || !BPF_CORE_READ(file, f_inode, i_nlink))
		name->flags |= RAW_NAME_THERE | RAW_NAME_CUT;
	else
		tell_folder(name, dentry);
}

/* Reports an open file, with its path if it was not reported before or has just been opened. */
static __always_inline void tell_open(struct raw_file *to, struct raw_name *name, struct file *file, bool is_new)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct told_file *told;
	struct told_file now;
	__u64 address = (__u64)file;

	to->address = address;
	to->ino = inode_ino(inode);
	to->generation = BPF_CORE_READ(inode, i_generation);
	to->s_dev = BPF_CORE_READ(inode, i_sb, s_dev);
	to->size = BPF_CORE_READ((struct inode___sized *)inode, i_size);
	to->position = BPF_CORE_READ(file, f_pos);
	to->flags = BPF_CORE_READ(file, f_flags);
	to->mode = BPF_CORE_READ(inode, i_mode);
	to->created = !!(BPF_CORE_READ(file, f_mode) & FMODE_CREATED);
	told = bpf_map_lookup_elem(&told_files, &address);
	if (!is_new && told && told->ino == to->ino && told->generation == to->generation && told->s_dev == to->s_dev)
		return;
	now = (struct told_file){ .ino = to->ino, .generation = to->generation, .s_dev = to->s_dev };
	bpf_map_update_elem(&told_files, &address, &now, BPF_ANY);
	to->is_new = 1;
	tell_path_of(name, file, is_new);
}

/* Skips a word at a place of a text. Returns false if it is not there. */
static __always_inline bool skip_word(const struct raw_name *name, __u32 *at, const char *word, __u32 length)
{
	for (__u32 i = 0; i < length; i++)
		if (name->text[(*at + i) & (NAME_BYTES - 1)] != word[i])
			return false;
	*at += length;
	return true;
}

#define SKIP_WORD(name, at, word) skip_word(name, at, word, sizeof(word) - 1)
#define DIGITS_MAX 10

/* Reads a number at a place of a text, and moves the place behind it. */
static __always_inline __u64 skip_number(const struct raw_name *name, __u32 *at)
{
	__u64 number = 0;

	for (int i = 0; i < DIGITS_MAX; i++) {
		__u32 digit = name->text[*at & (NAME_BYTES - 1)] - '0';

		if (digit > 9)
			break;
		number = number * 10 + digit;
		*at += 1;
	}
	return number;
}

/* Returns the open file to which a name leads: an empty name (AT_EMPTY_PATH) to that of the folder's descriptor, or a link in /proc. */
static __always_inline struct file *named_file(const struct raw_name *name, __s32 folder)
{
	__u32 at = 0;
	__u64 fd;

	if (name->flags & RAW_NAME_CUT)
		return 0;
	if (!name->text_len)
		return folder < 0 ? 0 : open_file(folder);
	if (SKIP_WORD(name, &at, "/proc/")) {
		if (!SKIP_WORD(name, &at, "self") && !SKIP_WORD(name, &at, "thread-self") &&
		    skip_number(name, &at) != bpf_get_current_pid_tgid() >> 32)
			return 0;
		if (!SKIP_WORD(name, &at, "/fd/"))
			return 0;
	} else if (!SKIP_WORD(name, &at, "/dev/fd/")) {
		return 0;
	}
	fd = skip_number(name, &at);
	return at == name->text_len ? open_file(fd) : 0;
}

/* Tells the open file to which the first name leads instead of the name, if there is one and the call followed it. */
static __always_inline void tell_named(struct raw_call *call, __s32 folder)
{
	struct raw_name *name = &call->name[0];
	struct file *file;

	if (call->result < 0)
		return;
	file = named_file(name, folder);
	if (!is_ours(file))
		return;
	name->flags = 0;
	name->folder_len = 0;
	name->text_len = 0;
	tell_open(&call->files[0], name, file, false);
}

/* <linux/fs.h> */
#define FICLONE 0x40049409U
#define FICLONERANGE 0x4020940dU

static __always_inline bool matters(__u32 command)
{
	return command == FICLONE || command == FICLONERANGE || command == F2FS_IOC_START_ATOMIC_WRITE ||
	       command == F2FS_IOC_COMMIT_ATOMIC_WRITE || command == F2FS_IOC_ABORT_ATOMIC_WRITE;
}

/* Reads the arguments that lie in the program's memory. */
static __always_inline void read_arguments(struct raw_call *call, __u32 shape)
{
	__u32 at = SHAPE_OFFSET(shape), second = SHAPE_OFFSET2(shape);

	if (at && argument_of(call, at - 1))
		bpf_probe_read_user(&call->offsets[0], 8, (void *)argument_of(call, at - 1));
	if (second && argument_of(call, second - 1))
		bpf_probe_read_user(&call->offsets[1], 8, (void *)argument_of(call, second - 1));
	/* struct open_how: flags, mode, resolve */
	if (shape & SHAPE_HOW)
		bpf_probe_read_user(&call->args[4], 16, (void *)call->args[2]);
	/* struct file_clone_range: src_fd, src_offset, src_length, dest_offset */
	if (shape & SHAPE_CLONES && (__u32)call->args[1] == FICLONERANGE)
		bpf_probe_read_user(&call->args[4], 32, (void *)call->args[2]);
}

static __always_inline struct raw_call *new_raw_call(__u32 of)
{
	struct raw_call *call;

	call = bpf_map_lookup_elem(&raw_calls, &of);
	if (!call)
		return 0;
	__builtin_memset(call->files, 0, sizeof(call->files));
	call->names = 0;
	call->stage = STAGE_RETURNED;
	call->request = 0;
	for (int i = 0; i < 2; i++) {
		call->offsets[i] = MOSTRACE_NONE;
		call->name[i].flags = 0;
		call->name[i].folder_len = 0;
		call->name[i].text_len = 0;
	}
	return call;
}

/* Tells the call's files and names. Returns false if it is about something else than the traced filesystem. */
static __always_inline bool tell_what(struct raw_call *call, const struct begun *begun, __u32 shape)
{
	struct file *file = (struct file *)begun->file;
	__u32 second;

	if (shape & SHAPE_OPENS && call->result >= 0) {
		file = open_file(call->result);
		if (!is_ours(file))
			return false;
		tell_open(&call->files[0], &call->name[0], file, true);
		return true;
	}
	if (shape & SHAPE_CLOSES) {
		if (!begun->is_last || call->result < 0)
			return false;
		call->files[0].address = begun->file;
		bpf_map_delete_elem(&told_files, &begun->file);
		return true;
	}
	if (SHAPE_FD(shape) || shape & SHAPE_MAPPED)
		tell_open(&call->files[0], &call->name[0], file, false);
	second = SHAPE_FD2(shape);
	if (shape & SHAPE_CLONES)
		second = (__u32)call->args[1] == FICLONERANGE ? 5 : (__u32)call->args[1] == FICLONE ? 3 : 0;
	if (second) {
		file = open_file(argument_of(call, second - 1));
		if (is_ours(file))
			tell_open(&call->files[1], &call->name[1], file, false);
	}
	if (SHAPE_PATH(shape)) {
		tell_path(call, &call->name[0], SHAPE_PATH(shape) - 1, shape);
		tell_named(call, shape & SHAPE_AT ? argument_of(call, SHAPE_PATH(shape) - 2) : AT_FDCWD);
	}
	if (SHAPE_PATH2(shape) && shape & SHAPE_TEXT)
		tell_text(&call->name[1], argument_of(call, SHAPE_PATH2(shape) - 1));
	else if (SHAPE_PATH2(shape))
		tell_path(call, &call->name[1], SHAPE_PATH2(shape) - 1, shape);
	return true;
}

static __always_inline bool may_be_ours(const struct raw_name *name)
{
	return name->flags & RAW_NAME_OURS || (name->text_len && name->text[0] == '/');
}

static __always_inline void put_operation(struct raw_call *call)
{
	__u64 wake = wake_flags(&operations, call->end_ns), head = __builtin_offsetof(struct raw_call, name);
	long error;

	if (call->name[1].flags) {
		call->names = 2;
		error = bpf_ringbuf_output(&operations, call, sizeof(*call), wake);
	} else if (call->name[0].flags) {
		call->names = 1;
		error = bpf_ringbuf_output(&operations, call, head + sizeof(struct raw_name), wake);
	} else {
		error = bpf_ringbuf_output(&operations, call, head, wake);
	}
	if (error)
		lose_operation(LOSS_OPERATIONS_RING);
}

/* Tells that a descriptor ends, if it is the last one of its file. Returns true if it is. */
static __always_inline bool tell_close(__u32 fd, __u32 stage)
{
	struct file *file = open_file(fd);
	__u64 address = (__u64)file, ids = bpf_get_current_pid_tgid();
	struct raw_call *call;

	if (!is_ours(file) || !is_last_descriptor(file))
		return false;
	call = new_raw_call(CALL_OF_CLOSE);
	if (!call)
		return false;
	call->start_ns = call->end_ns = bpf_ktime_get_ns();
	call->result = 0;
	call->pid = ids;
	call->tgid = ids >> 32;
	call->number = close_number;
	call->stage = stage;
	call->request = call->pid;
	call->files[0].address = address;
	/* If the program is not executed, the file stays. */
	if (stage == STAGE_RETURNED)
		bpf_map_delete_elem(&told_files, &address);
	put_operation(call);
	return true;
}

/* Descriptors of the current process that end. */
struct ending {
	__u32 first;
	__u32 on_exec;		/* only the marked ones, if the program is executed */
	__u64 told;
};

static __always_inline bool is_closed_on_exec(__u32 fd)
{
	struct fdtable___closing *table = BPF_CORE_READ((struct task_struct___files *)this_task(), files, fdt);
	unsigned long bits = 0;

	bpf_probe_read_kernel(&bits, sizeof(bits), BPF_CORE_READ(table, close_on_exec) + fd / (8 * sizeof(bits)));
	return bits >> fd % (8 * sizeof(bits)) & 1;
}

static __always_inline bool close_one(__u32 fd, bool on_exec)
{
	if (!on_exec)
		return tell_close(fd, STAGE_RETURNED);
	return is_closed_on_exec(fd) && tell_close(fd, STAGE_SUBMITTED);
}

#ifdef MOSTRACE_LOOPLESS
/* The most descriptors of one process that are looked at when they end. */
#define DESCRIPTORS_MAX 1024

/* A function of its own, which the verifier walks once. */
__noinline int close_nth(__u32 fd, __u32 on_exec)
{
	return close_one(fd, on_exec);
}

static __always_inline void close_in_turn(struct ending *ending, __u32 count)
{
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < DESCRIPTORS_MAX; i++) {
		if (i >= count)
			break;
		ending->told += close_nth(ending->first + i, ending->on_exec);
	}
}
#else
#define DESCRIPTORS_MAX (1 << 16)

static long close_nth(__u32 nth, struct ending *ending)
{
	ending->told += close_one(ending->first + nth, ending->on_exec);
	return 0;
}

static __always_inline void close_in_turn(struct ending *ending, __u32 count)
{
	bpf_loop(count < DESCRIPTORS_MAX ? count : DESCRIPTORS_MAX, close_nth, ending, 0);
}
#endif

/* Tells the ends of descriptors. Returns of how many. Not static, so that the verifier walks it once. */
__noinline int close_descriptors(__u32 first, __u32 count, __u32 on_exec)
{
	struct ending ending = { .first = first, .on_exec = on_exec };

	close_in_turn(&ending, count);
	return ending.told;
}

/* Returns how many descriptors the current process has room for; 0 if other processes share them. */
static __always_inline __u32 own_descriptors(void)
{
	struct task_struct___files *task = (void *)this_task();
	struct files_struct___shared *files = BPF_CORE_READ(task, files);

	if (!files || BPF_CORE_READ(files, count.counter) != 1)
		return 0;
	return BPF_CORE_READ(files, fdt, max_fds);
}

static __always_inline void tell_closed_range(__u32 first, __u32 last)
{
	struct task_struct *task = this_task();
	__u32 count = BPF_CORE_READ(task, files, fdt, max_fds);

	if (first <= last && first < count)
		close_descriptors(first, (last < count ? last + 1 : count) - first, false);
}

/* Reports the descriptors that end if the program is executed; another record says whether it is. Returns their number. */
static __always_inline __u64 tell_closed_by_exec(void)
{
	return close_descriptors(0, own_descriptors(), true);
}

/* Reports the end of a request that was reported with STAGE_SUBMITTED. */
static __always_inline void tell_end(__u64 request, __s64 result)
{
	struct raw_call *call = new_raw_call(CALL_OF_CLOSE);
	__u64 ids = bpf_get_current_pid_tgid();

	if (!call)
		return;
	call->start_ns = call->end_ns = bpf_ktime_get_ns();
	call->result = result;
	call->pid = ids;
	call->tgid = ids >> 32;
	call->number = close_number;
	call->stage = STAGE_COMPLETED;
	call->request = request;
	put_operation(call);
}

static __always_inline int end_of_process(void)
{
	close_descriptors(0, own_descriptors(), false);
	return 0;
}

/* A program was executed by a thread, which may have another number since. */
static __always_inline int end_of_exec(__u32 thread)
{
	struct begun *begun = bpf_map_lookup_elem(&begun_calls, &thread);

	if (!begun || !begun->number || !(shape_of(begun->number - 1) & SHAPE_EXECUTES))
		return 0;
	begun->number = 0;
	tell_end(thread, 0);
	return 0;
}

/* <linux/errno.h>: the call will be made again, and has not returned to the program. */
#define ERESTARTSYS 512
#define ERESTART_LAST 516

static __always_inline int end_operation(struct pt_regs *regs, long result)
{
	__u32 thread = bpf_get_current_pid_tgid(), number = call_number(regs), shape = shape_of(number);
	struct raw_call *call;
	struct begun *begun;

	if (!shape || (result <= -ERESTARTSYS && result >= -ERESTART_LAST))
		return 0;
	begun = bpf_map_lookup_elem(&begun_calls, &thread);
	if (!begun || begun->number != number + 1)
		return 0;
	begun->number = 0;
	if (shape & SHAPE_EXECUTES)
		tell_end(thread, result);
	if (shape & (SHAPE_EXECUTES | SHAPE_SUBMITS))
		return 0;
	call = new_raw_call(CALL_OF_RETURN);
	if (!call)
		return 0;
	call->start_ns = begun->start_ns;
	call->end_ns = bpf_ktime_get_ns();
	call->result = result;
	call->pid = thread;
	call->tgid = bpf_get_current_pid_tgid() >> 32;
	call->number = number;
	call->args[0] = begun->first;
	for (__u32 i = 1; i < 6; i++)
		call->args[i] = call_argument(regs, i);
	if (shape & SHAPE_CLONES && !matters(call->args[1]))
		return 0;
	read_arguments(call, shape);
	if (shape & SHAPE_MAPPED)
		call->args[6] = begun->offset;
	if (!tell_what(call, begun, shape))
		return 0;
	if (!call->files[0].address && !(shape & SHAPE_ALL) && !may_be_ours(&call->name[0]) &&
	    !may_be_ours(&call->name[1]))
		return 0;
	put_operation(call);
	return 0;
}

#endif
