/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The entries that a kernel-side probe hands to user space. They are shared by the BPF probes and
 * the kernel module; analyzer/bundle/src/entry.rs declares the same structures with the same sizes, and each
 * side asserts the sizes.
 *
 * All integers are in the byte order of the machine that captured. A sector is 512 bytes and
 * counted from the start of the whole disk.
 */
#ifndef MOSTRACE_H
#define MOSTRACE_H

#define MOSTRACE_COMM_LEN 16
#define MOSTRACE_NAME_MAX 256
#define MOSTRACE_NONE (~0ULL)

enum mostrace_type {
	MOSTRACE_PROCESS = 1,
	MOSTRACE_FILE = 2,
	/* a block event of the BPF probes, see blockevents.bpf.h; never in a table */
	MOSTRACE_BLOCK = 3,
	MOSTRACE_DIRTIER = 4,
	MOSTRACE_HANDLE = 5,
	MOSTRACE_DIRTIED = 6,
	MOSTRACE_CALL = 7,
	MOSTRACE_FREED = 8,
	MOSTRACE_F2FS = 9,
	MOSTRACE_FORK = 10,
	MOSTRACE_OPERATION = 11,
	MOSTRACE_CGROUP = 12,
	MOSTRACE_STACK = 13,
	MOSTRACE_COMM = 15,
	MOSTRACE_SERVED = 17,
	/* in a ring a bio that is like an earlier one (like.bpf.h), in a table of version 2 the short form of an entry */
	MOSTRACE_LIKE = 16,
};

/* The stage of a bio's or request's life at which the entry was made. */
enum mostrace_stage {
	MOSTRACE_QUEUE = 0,	/* block_bio_queue */
	MOSTRACE_INSERT = 1,	/* block_rq_insert */
	MOSTRACE_ISSUE = 2,	/* block_rq_issue of a request that bypassed insertion */
	MOSTRACE_COMPLETE = 3,	/* end of an empty flush, which is never issued as a request of
				 * its own */
};

enum mostrace_flags {
	MOSTRACE_NO_SUBMITTER = 1,	/* block_bio_queue was not seen: pid is unknown */
	MOSTRACE_UNLINKED = 2,		/* of a file: i_nlink was 0 */
	MOSTRACE_KERNEL_THREAD = 2,	/* of a process or a dirtier: PF_KTHREAD */
	MOSTRACE_COLLECTS = 4,		/* of a dirtier: it moved the pages while it collected
					 * f2fs's garbage */
	MOSTRACE_HARDLINKED = 4,	/* i_nlink > 1: the name is one of several */
	MOSTRACE_NAME_CUT = 8,		/* the name is longer than MOSTRACE_NAME_MAX - 1 */
	MOSTRACE_MAPPED = 8,		/* of a dirtier: the file had a shared mapping that may be
					 * written when the pages were dirtied or queued */
	MOSTRACE_CHAINED = 16,		/* the submitter was taken from the bio of which this is
					 * a part or a clone */
	MOSTRACE_AGAIN = 16,		/* of a dirtier: another bio has written of these pages
					 * since they were dirtied */
	MOSTRACE_NAME_WITHHELD = 32,	/* there is a name, but the file was not asked for */
	/* of a process or a dirtier: it did so in mount or fsconfig, or in umount2 */
	MOSTRACE_MOUNTS = 32,
	MOSTRACE_UNMOUNTS = 64,
	MOSTRACE_INO_PASSING = 64,	/* ino is the inode's number in memory; the disk has none */
	MOSTRACE_NO_GENERATION = 128,	/* the generation is not known */
};

/* The owner of the first page of a bio. */
enum mostrace_origin {
	MOSTRACE_ORIGIN_UNKNOWN = 0,
	MOSTRACE_ORIGIN_FILE = 1,	/* page cache of a file */
	MOSTRACE_ORIGIN_BDEV = 2,	/* page cache of the device: a filesystem's metadata */
	MOSTRACE_ORIGIN_DIRECT = 3,	/* direct IO of a file */
	MOSTRACE_ORIGIN_RAW = 4,	/* direct IO of the block device itself */
	MOSTRACE_ORIGIN_JOURNAL = 5,	/* a jbd2 block, see mostrace_jbd2 */
	MOSTRACE_ORIGIN_EMPTY = 6,	/* no data: a flush or a discard */
	MOSTRACE_ORIGIN_NODE = 7,	/* f2fs's node inode */
	/*
	 * f2fs's meta inode: checkpoint, SIT, NAT, SSA, and blocks that GC moves without reading
	 * them
	 */
	MOSTRACE_ORIGIN_META = 8,
};

/* The kind of block that a jbd2 bio carries; 1 to 5 are h_blocktype of <linux/jbd2.h>. */
enum mostrace_jbd2 {
	MOSTRACE_JBD2_NONE = 0,
	MOSTRACE_JBD2_DESCRIPTOR = 1,
	MOSTRACE_JBD2_COMMIT = 2,
	MOSTRACE_JBD2_SUPERBLOCK_V1 = 3,
	MOSTRACE_JBD2_SUPERBLOCK = 4,
	MOSTRACE_JBD2_REVOKE = 5,
	MOSTRACE_JBD2_METADATA_COPY = 16,	/* the home block belongs to the filesystem */
	MOSTRACE_JBD2_DATA_COPY = 17,		/* the home block belongs to a file: data=journal */
};

/* The contents of a file entry's blocks. */
enum mostrace_what {
	MOSTRACE_WHAT_UNKNOWN = 0,
	MOSTRACE_WHAT_REGULAR = 1,	/* these three: by i_mode */
	MOSTRACE_WHAT_DIRECTORY = 2,
	MOSTRACE_WHAT_SYMLINK = 3,
	/* An f2fs node block, recognised by its footer; `offset` is its nid times the page size. */
	MOSTRACE_WHAT_HOT_NODE = 16,	/* direct node of a directory */
	MOSTRACE_WHAT_WARM_NODE = 17,	/* direct node of another file */
	MOSTRACE_WHAT_FSYNC_NODE = 18,	/* the same, marked by fsync */
	MOSTRACE_WHAT_COLD_NODE = 19,	/* indirect node */
	MOSTRACE_WHAT_NODE = 20,	/* the footer could not be read; ino is 0 */
};

/* The device from whose start home_sector counts. */
enum mostrace_home {
	MOSTRACE_HOME_DISK = 0,		/* the traced disk */
	/* the filesystem's device, which is above the disk (dm) or beside it (external journal) */
	MOSTRACE_HOME_FILESYSTEM = 1,
};

/* In the low 8 bits of opf: requests that manage zones, whose own numbers differ between kernels. */
enum mostrace_zone_op {
	MOSTRACE_ZONE_OPEN = 0x81,
	MOSTRACE_ZONE_CLOSE = 0x82,
	MOSTRACE_ZONE_FINISH = 0x83,
	MOSTRACE_ZONE_RESET = 0x84,
	MOSTRACE_ZONE_RESET_ALL = 0x85,
};

/* A system call by which a file or its metadata is changed or written out. */
enum mostrace_call_kind {
	MOSTRACE_CALL_OTHER = 0,	/* another call, or no call: a kernel thread's own work */
	MOSTRACE_CALL_WRITE = 1,	/* write, pwrite64, writev, pwritev, pwritev2 */
	MOSTRACE_CALL_FSYNC = 2,
	MOSTRACE_CALL_FDATASYNC = 3,
	MOSTRACE_CALL_SYNC_RANGE = 4,	/* sync_file_range */
	MOSTRACE_CALL_MSYNC = 5,
	MOSTRACE_CALL_SYNC = 6,		/* sync, syncfs, FIFREEZE, EXT4_IOC_CHECKPOINT */
	MOSTRACE_CALL_UNLINK = 7,	/* unlink, unlinkat, rmdir */
	MOSTRACE_CALL_RENAME = 8,	/* rename, renameat, renameat2 */
	MOSTRACE_CALL_TRUNCATE = 9,	/* truncate, ftruncate */
	MOSTRACE_CALL_FALLOCATE = 10,	/* also FS_IOC_ZERO_RANGE and the like */
	MOSTRACE_CALL_OPEN = 11,	/* open, openat, openat2, creat */
	MOSTRACE_CALL_CLOSE = 12,
	MOSTRACE_CALL_MKDIR = 13,	/* mkdir, mkdirat */
	MOSTRACE_CALL_LINK = 14,	/* link, linkat, symlink, symlinkat, mknod, mknodat */
	MOSTRACE_CALL_XATTR = 15,	/* setxattr, removexattr and the like */
	MOSTRACE_CALL_READ = 16,	/* read, pread64, readv, getdents and the like */
	MOSTRACE_CALL_URING = 17,	/* io_uring_enter */
	MOSTRACE_CALL_ATTR = 18,	/* chmod, chown, utimensat and the like */
	MOSTRACE_CALL_MOUNT = 19,	/* mount, fsconfig; in older recordings also umount2 */
	MOSTRACE_CALL_SPLICE = 20,	/* sendfile, splice, copy_file_range */
	/* ioctls of f2fs */
	MOSTRACE_CALL_GC = 21,		/* starts garbage collection */
	MOSTRACE_CALL_CHECKPOINT = 22,
	MOSTRACE_CALL_ATOMIC_START = 23,
	MOSTRACE_CALL_ATOMIC_COMMIT = 24,
	MOSTRACE_CALL_ATOMIC_ABORT = 25,
	MOSTRACE_CALL_MMAP = 26,	/* mmap: a shared mapping of a file that is open for writing */
	MOSTRACE_CALL_UMOUNT = 27,	/* umount2 */
	/* In a handle: mount or fsconfig, which is making the handle's own filesystem ready. */
	MOSTRACE_CALL_FILL_SUPER = 28,
	/*
	 * No call, but what a filesystem wrote within a call that does not write: an overlay copied
	 * a file up. The bytes were passed to no call.
	 */
	MOSTRACE_CALL_COPY_UP = 29,
};

/* Flags of a handle's head. */
enum mostrace_handle_flags {
	MOSTRACE_HANDLE_SYNC = 1,	/* h_sync: it asked for the commit */
	/*
	 * Another handle of the transaction was open at the same time: a block that is attributed
	 * to one of them may have been dirtied by the other. Not set where each block was reported
	 * when it was modified: by the kernel's recorder, or by a program at
	 * jbd2_journal_dirty_metadata.
	 */
	MOSTRACE_HANDLE_OVERLAP = 2,
	MOSTRACE_HANDLE_RESTARTED = 4,	/* it continues in another one; how much it dirtied in
					 * this is not known */
	MOSTRACE_HANDLE_UNSEEN = 8,	/* it began before the recording: no function, no inode */
	MOSTRACE_HANDLE_KERNEL = 16,	/* it belongs to a kernel thread: PF_KTHREAD */
	/*
	 * It gave blocks back. jbd2 subtracts those that the transaction had modified from
	 * `dirtied`, which is then less than what the handle modified.
	 */
	MOSTRACE_HANDLE_FORGOT = 32,
	/*
	 * Each thread has an entry for each function and inode that it began a handle for in the
	 * transaction.
	 */
	MOSTRACE_HANDLE_EACH_CAUSE = 64,
	/* It was the first of its transaction: no handle of the transaction is missing before it. */
	MOSTRACE_HANDLE_OPENS = 128,
};

/* Flags of a call's head. */
enum mostrace_call_flags {
	MOSTRACE_CALL_FIRST = 1,	/* first_bytes is set */
	/* 2 is in firstbytes.bpf.h. */
	/*
	 * It asked for durability, beside what it did: it returns only when that is on the disk
	 * (O_SYNC, RWF_DSYNC, chattr +S, dirsync …).
	 */
	MOSTRACE_CALL_THROUGH = 4,
	/*
	 * A request to io_uring that posts no completion unless it fails, so that nothing reports its
	 * end: it may go on after head.time_ns. Its offset and bytes are as asked for, and its
	 * result is 0. If it fails, another entry without this flag follows.
	 */
	MOSTRACE_CALL_OPEN_END = 8,
	/*
	 * The filesystem reported the write, the sync, the truncation or the fallocate; it is part of
	 * no call that has an entry (io_submit, a 32-bit program, a loop device). start_ns of a sync
	 * is its beginning; otherwise it is head.time_ns: when the write ended, or at some time within
	 * the truncation or the fallocate.
	 */
	MOSTRACE_CALL_PART = 16,
	/* In an unlink: the rename whose entry precedes this one replaced the file. */
	MOSTRACE_CALL_REPLACED = 32,
	MOSTRACE_CALL_MODE = 64,	/* of a fallocate: first_bytes begins with its mode, __u32 */
};

/* Flags of a dirtied block's head: the place where it was found, and whether it is all. */
enum mostrace_dirtied_flags {
	MOSTRACE_DIRTIED_NEW = 1,	/* among the last buffers that joined t_buffers */
	MOSTRACE_DIRTIED_KEPT = 2,	/* still held by the committing transaction */
	/*
	 * Every modification is recorded: there is an entry for each thread, function and inode whose
	 * handle modified the block. Otherwise there is one for the first modification.
	 */
	MOSTRACE_DIRTIED_EACH = 4,
};

/*
 * The kind of an ext4 metadata block, recognised by its bytes when a single buffer is written. A
 * block can change hands, so at the end of a recording it may hold something else.
 */
enum mostrace_contents {
	MOSTRACE_CONTENTS_UNKNOWN = 0,	/* the bytes were not examined */
	MOSTRACE_CONTENTS_OTHER = 1,	/* none of the kinds below */
	MOSTRACE_CONTENTS_EXTENTS = 2,	/* ext4_extent_header */
	MOSTRACE_CONTENTS_XATTR = 3,	/* ext4_xattr_header */
	MOSTRACE_CONTENTS_DIRECTORY = 4, /* ".", a node of the index, or a tail with a checksum */
};

/* Common head. 32 bytes. */
struct mostrace_entry {
	__u16 type;	/* enum mostrace_type */
	__u16 size;	/* length of the whole record in bytes, a multiple of 8 */
	__u32 dev;	/* the whole disk: major << 20 | minor */
	__u64 time_ns;	/* CLOCK_MONOTONIC at the stage */
	__u64 sector;
	__u32 bytes;
	__u16 cpu;
	__u8 stage;	/* enum mostrace_stage */
	__u8 flags;	/* enum mostrace_flags */
};

/* One bio of a request, and the task that submitted it. 88 bytes. */
struct mostrace_process {
	struct mostrace_entry head;
	__u64 submit_ns;	/* CLOCK_MONOTONIC at block_bio_queue, or 0 */
	__u64 home_sector;	/* first sector of a journalled copy's home, otherwise
				 * MOSTRACE_NONE */
	__u32 pid;		/* thread */
	__u32 tgid;		/* process */
	__u32 uid;
	__u32 opf;		/* bio->bi_opf */
	__u32 tid;		/* jbd2 transaction, or 0 */
	__u8 origin;		/* enum mostrace_origin */
	__u8 jbd2;		/* enum mostrace_jbd2 */
	__u8 home;		/* enum mostrace_home */
	__u8 contents;		/* enum mostrace_contents */
	char comm[MOSTRACE_COMM_LEN];
};

/*
 * A run of a bio with consecutive bytes of one file. 72 bytes, then name_len bytes of name (no
 * NUL), padded with NULs to a multiple of 8. The name is the last component or, where the probe
 * found its way up to the root, the whole path from the root, written backwards:
 * "name/folder/folder/".
 */
struct mostrace_file {
	struct mostrace_entry head;
	__u64 ino;		/* FAT: i_pos, the position of the directory entry; 0 once
				 * unlinked */
	__u64 offset;		/* in the file, in bytes; MOSTRACE_NONE: unknown */
	__u64 parent;		/* inode of the directory, or 0 */
	__u32 generation;
	__u32 s_dev;		/* the filesystem: major << 20 | minor */
	__u32 nlink;
	__u16 name_len;		/* 0: no dentry was left, or the file was not asked for */
	__u8 origin;		/* MOSTRACE_ORIGIN_FILE, _DIRECT, _JOURNAL or _NODE */
	__u8 what;		/* enum mostrace_what */
	char name[];
};

/*
 * The task that dirtied a run of consecutive pages of a bio: it made them dirty after they were
 * clean. The task that submits them may be another one. Pages whose dirtier is not known have no
 * such entry. 72 bytes.
 */
struct mostrace_dirtier {
	struct mostrace_entry head;
	__u64 dirty_ns;		/* CLOCK_MONOTONIC, of the run's first page */
	__u32 pid;		/* thread */
	__u32 tgid;		/* process */
	__u32 uid;
	__u32 pad;
	char comm[MOSTRACE_COMM_LEN];
};

/*
 * One handle of a journal (jbd2): an operation of the filesystem, which joined a transaction and
 * ended at head.time_ns. Of the handles that were not the first to modify any block, only one per
 * process and transaction has an entry. head.sector is the number of its stack, or MOSTRACE_NONE;
 * head.bytes is 0. 120 bytes.
 */
struct mostrace_handle {
	struct mostrace_entry head;	/* flags: enum mostrace_handle_flags */
	__u64 id;		/* the handle's id, unique within this recording */
	__u64 start_ns;		/* CLOCK_MONOTONIC, or 0 */
	__u64 ino;		/* the inode for which it began or which it marked dirty first,
				 * or 0 */
	/*
	 * The filesystem's function that began the handle: the kernel passes an address; in the
	 * bundle it is an index into manifest.functions. MOSTRACE_NONE: unknown.
	 */
	__u64 function;
	__u32 generation;	/* i_generation of ino */
	__u32 s_dev;		/* the filesystem: major << 20 | minor */
	__u32 tid;		/* jbd2 transaction */
	__u32 pid;		/* thread */
	__u32 tgid;		/* process */
	__u32 uid;
	__u32 requested;	/* number of buffers that it asked for */
	__u32 dirtied;		/* number of buffers that it was the first in its transaction to
				 * modify */
	__u32 named;		/* the number of those that have a struct mostrace_dirtied */
	__u16 type;		/* h_type: ext4's EXT4_HT_… */
	__u16 call;		/* enum mostrace_call_kind: the system call of which it was part */
	char comm[MOSTRACE_COMM_LEN];
};

/*
 * A block that a handle was the first in its transaction to modify. head.sector and head.bytes are
 * those of the home block; head.time_ns is the time at which it was modified, or the handle's end.
 * 48 bytes.
 */
struct mostrace_dirtied {
	struct mostrace_entry head;	/* flags: enum mostrace_dirtied_flags */
	__u64 handle;		/* its id */
	__u32 tid;		/* jbd2 transaction */
	__u8 home;		/* enum mostrace_home: the device from whose start head.sector
				 * counts */
	__u8 pad[3];
};

/*
 * A system call that changed a file of the traced filesystem or wrote it out, and that returned at
 * head.time_ns. head.sector is the number of its stack, or MOSTRACE_NONE; head.bytes is 0. 120
 * bytes.
 */
struct mostrace_call {
	struct mostrace_entry head;	/* flags: enum mostrace_call_flags */
	__u64 start_ns;
	__u64 ino;
	__u64 offset;		/* offset in the file at which the call began, or MOSTRACE_NONE */
	__u64 bytes;		/* bytes written, or the length of the range that the call names */
	__s64 result;		/* return value: bytes, 0, or a negative errno */
	/*
	 * The first 8 bytes of a short write, as they are in memory: they identify the header of a
	 * journal or of a WAL's frame.
	 */
	__u8 first_bytes[8];
	__u32 generation;	/* i_generation of ino */
	__u32 s_dev;		/* the filesystem: major << 20 | minor */
	__u32 pid;		/* thread */
	__u32 tgid;		/* process */
	__u32 uid;
	__u16 kind;		/* enum mostrace_call_kind */
	/*
	 * For f2fs's fsync: enum cp_reason_type, the reason why it wrote a checkpoint; 0: it wrote
	 * none.
	 */
	__u16 cp_reason;
	char comm[MOSTRACE_COMM_LEN];
};

/* Flags of a fork's head. */
enum mostrace_fork_flags {
	MOSTRACE_FORK_OF_COMMAND = 1,	/* belongs to the recorded command's tree; set by user
					 * space */
};

/*
 * A process (a thread group) that was started at head.time_ns, and the process that started it.
 * head.sector is MOSTRACE_NONE and head.bytes 0. 40 bytes.
 */
struct mostrace_fork {
	struct mostrace_entry head;	/* flags: enum mostrace_fork_flags */
	__u32 tgid;
	__u32 parent;		/* the process that called fork, clone or vfork */
};

/*
 * Blocks of metadata (directories, extents, attributes) that a file frees; they belonged to it
 * until then. 56 bytes.
 */
struct mostrace_freed {
	struct mostrace_entry head;
	__u64 ino;
	__u32 generation;
	__u32 s_dev;		/* the filesystem: major << 20 | minor */
	__u32 tid;		/* jbd2 transaction, or 0 without a journal */
	__u8 home;		/* enum mostrace_home: the device from whose start head.sector
				 * counts */
	__u8 pad[3];
};

/* A step of f2fs's work that is not part of a system call. */
enum mostrace_f2fs_step {
	MOSTRACE_F2FS_ASKED = 1,	/* the task asks for a checkpoint and waits for it */
	MOSTRACE_F2FS_CHECKPOINT = 2,	/* a checkpoint begins */
	MOSTRACE_F2FS_WRITTEN = 3,	/* the checkpoint is written */
	MOSTRACE_F2FS_GC = 4,		/* the task begins to collect garbage */
	MOSTRACE_F2FS_COLLECTED = 5,	/* the task stops collecting garbage */
};

/*
 * One of these steps, and the task that does it. head.sector is MOSTRACE_NONE and head.bytes 0; in
 * head.flags MOSTRACE_KERNEL_THREAD may be set. 72 bytes.
 */
struct mostrace_f2fs {
	struct mostrace_entry head;
	__u32 s_dev;		/* the filesystem: major << 20 | minor */
	__u32 pid;		/* thread */
	__u32 tgid;		/* process */
	__u32 uid;
	__u16 step;		/* enum mostrace_f2fs_step */
	__u16 reason;		/* for a checkpoint: CP_… of fs/f2fs/f2fs.h, a set of bits */
	__u16 call;		/* enum mostrace_call_kind: the system call that the task is in */
	__u16 pad;
	char comm[MOSTRACE_COMM_LEN];
};

/*
 * The cgroup of the unified hierarchy that a process was in at head.time_ns. It is recorded when the process does
 * something that has an entry, and again from time to time. head.sector is MOSTRACE_NONE and
 * head.bytes 0. 48 bytes, then path_len bytes of path (no NUL), padded with NULs to a multiple of 8:
 * written backwards from the hierarchy's root, "name/folder/folder/"; empty for the root itself.
 */
struct mostrace_cgroup {
	struct mostrace_entry head;	/* flags: MOSTRACE_NAME_CUT */
	__u64 id;		/* the inode of its folder */
	__u32 tgid;		/* process */
	__u16 path_len;
	__u16 pad;
	char path[];
};

/* Flags of the head of a process's name. */
enum mostrace_comm_flags {
	MOSTRACE_COMM_STARTED = 1,	/* the process began then */
	MOSTRACE_COMM_CHANGED = 2,	/* it had another name before */
};

/*
 * The name of a process, which is that of its main thread (the thread group's leader), from
 * head.time_ns on. head.sector is MOSTRACE_NONE and head.bytes 0. 56 bytes.
 */
struct mostrace_comm {
	struct mostrace_entry head;	/* flags: enum mostrace_comm_flags */
	__u32 tgid;		/* process */
	__u32 pad;
	char comm[MOSTRACE_COMM_LEN];
};

/*
 * A thread of a FUSE daemon answered a request at head.time_ns that it had read itself. What it did from start_ns on, it did for
 * the thread that made the request. head.sector is MOSTRACE_NONE and head.bytes 0. 88 bytes.
 */
struct mostrace_served {
	struct mostrace_entry head;
	__u64 start_ns;		/* when it began to wait for the request */
	__u64 unique;		/* the request's number */
	__u32 pid;		/* thread of the daemon */
	__u32 tgid;		/* the daemon */
	__u32 for_pid;		/* the thread that made the request */
	__u32 for_tgid;		/* its process, or ~0 if it had ended */
	__u32 for_uid;
	__u32 opcode;		/* enum fuse_opcode */
	char for_comm[MOSTRACE_COMM_LEN]; /* its name, empty if its process is unknown */
};

/* Flags of a stack's head. */
enum mostrace_stack_flags {
	MOSTRACE_STACK_CUT = 1,	/* the program's outermost frames are missing */
};

/*
 * A stack from which calls were made or handles begun. head.sector is MOSTRACE_NONE and head.bytes
 * 0. 48 bytes; in the bundle text follows, padded with NULs to a multiple of 8: a line for each
 * frame, the kernel's first, the innermost first.
 */
struct mostrace_stack {
	struct mostrace_entry head;	/* flags: enum mostrace_stack_flags */
	__u64 id;		/* its number: a hash of tgid and the frames' addresses */
	__u32 tgid;		/* process */
	__u16 kernel;		/* the number of the kernel's frames */
	__u16 user;		/* the number of the program's frames */
};

/* What an operation does; bundle/src/operation.rs describes each. */
enum mostrace_operation_kind {
	MOSTRACE_OP_OPEN = 1,
	MOSTRACE_OP_OPENED = 2,	/* no call: the file was open when it was first used */
	MOSTRACE_OP_CLOSE = 3,	/* of the last descriptor */
	MOSTRACE_OP_READ = 4,
	MOSTRACE_OP_WRITE = 5,
	MOSTRACE_OP_TRUNCATE = 6,
	MOSTRACE_OP_FALLOCATE = 7,
	MOSTRACE_OP_FSYNC = 8,
	MOSTRACE_OP_FDATASYNC = 9,
	MOSTRACE_OP_SYNC_RANGE = 10,
	MOSTRACE_OP_SYNC = 11,
	MOSTRACE_OP_SYNCFS = 12,
	MOSTRACE_OP_MSYNC = 13,
	MOSTRACE_OP_STORE = 14,	/* a range of a shared mapping became dirty */
	MOSTRACE_OP_RENAME = 15,
	MOSTRACE_OP_LINK = 16,
	MOSTRACE_OP_SYMLINK = 17,
	MOSTRACE_OP_UNLINK = 18,
	MOSTRACE_OP_RMDIR = 19,
	MOSTRACE_OP_MKDIR = 20,
	MOSTRACE_OP_MKNOD = 21,
	MOSTRACE_OP_CHMOD = 22,
	MOSTRACE_OP_CHOWN = 23,
	MOSTRACE_OP_UTIMES = 24,
	MOSTRACE_OP_SETXATTR = 25,
	MOSTRACE_OP_REMOVEXATTR = 26,
	MOSTRACE_OP_COPY = 27,
	MOSTRACE_OP_CLONE = 28,
	MOSTRACE_OP_ATOMIC_START = 29,
	MOSTRACE_OP_ATOMIC_COMMIT = 30,
	MOSTRACE_OP_ATOMIC_ABORT = 31,
	MOSTRACE_OP_FADVISE = 32,
};

/* Flags of an operation's head. */
enum mostrace_operation_flags {
	MOSTRACE_OP_CREATED = 1,	/* the open made the file */
	MOSTRACE_OP_NO_PATH = 2,	/* the path is unknown */
	MOSTRACE_OP_BY_PATH = 4,	/* the call named its file by path, not by descriptor */
	MOSTRACE_OP_POSITIONED = 8,	/* offset was an argument, or is the filesystem's word */
};

/*
 * A call that changed the filesystem's files or names or ordered its writes, and that returned at
 * head.time_ns. head.sector is MOSTRACE_NONE and head.bytes 0. 144 bytes, then the path and the
 * second name, padded with NULs to a multiple of 8. In the bundle a path counts from the root of
 * the filesystem, without a leading slash; user space makes it from what the probe records.
 */
struct mostrace_operation {
	struct mostrace_entry head;	/* flags: enum mostrace_operation_flags */
	__u64 start_ns;
	__u64 file;		/* the open file, a number that is unique in the recording; 0: none */
	__u64 other_file;	/* of a copy or clone: the open file that the bytes came from */
	__u64 offset;		/* in the file, or MOSTRACE_NONE */
	__u64 other_offset;	/* in other_file, or MOSTRACE_NONE */
	__u64 bytes;		/* asked for, length of the range, or the new length */
	__s64 result;		/* return value: bytes, 0, or a negative errno */
	__u64 ino;		/* or 0 */
	__u64 size;		/* of open and opened: i_size then; otherwise MOSTRACE_NONE */
	__u32 generation;	/* i_generation of ino */
	__u32 s_dev;		/* the filesystem: major << 20 | minor */
	__u32 pid;		/* thread */
	__u32 tgid;		/* process */
	__u32 flags;		/* the call's; in the bundle as in asm-generic */
	__u32 mode;		/* of open, mkdir, mknod, chmod */
	__u32 uid;		/* of chown */
	__u32 gid;
	__u16 kind;		/* enum mostrace_operation_kind */
	__u16 i_mode;		/* of open and opened */
	__u16 path_len;
	__u16 other_len;
	char names[];
};

#endif
