/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The entries that a kernel-side probe hands to user space. Shared by the BPF
 * probes and the kernel module; bundle/src/entry.rs holds the same shapes and
 * the same sizes, and each side asserts them.
 *
 * All integers are in the byte order of the machine that captured. A sector is
 * 512 bytes and counted from the start of the whole disk.
 */
#ifndef MOSTRACE_H
#define MOSTRACE_H

#define MOSTRACE_COMM_LEN 16
#define MOSTRACE_NAME_MAX 256
#define MOSTRACE_NONE (~0ULL)

enum mostrace_type {
	MOSTRACE_PROCESS = 1,
	MOSTRACE_FILE = 2,
	/* a blk_io_trace record of the BPF event source, see mostrace.bpf.c */
	MOSTRACE_BLOCK = 3,
	MOSTRACE_DIRTIER = 4,
};

/* Where in a bio's or request's life the entry was made. */
enum mostrace_stage {
	MOSTRACE_QUEUE = 0,	/* block_bio_queue */
	MOSTRACE_INSERT = 1,	/* block_rq_insert */
	MOSTRACE_ISSUE = 2,	/* block_rq_issue: insertion was bypassed */
	MOSTRACE_COMPLETE = 3,	/* an empty flush: it is never issued as itself */
};

enum mostrace_flags {
	MOSTRACE_NO_SUBMITTER = 1,	/* Q was not seen: pid is unknown */
	MOSTRACE_UNLINKED = 2,		/* i_nlink was 0 */
	MOSTRACE_HARDLINKED = 4,	/* i_nlink > 1: the name is one of several */
	MOSTRACE_NAME_CUT = 8,		/* name longer than MOSTRACE_NAME_MAX - 1 */
	MOSTRACE_CHAINED = 16,		/* the submitter is that of which this is a part or clone */
	MOSTRACE_NAME_WITHHELD = 32,	/* there is a name, but the file was not asked for */
	MOSTRACE_INO_PASSING = 64,	/* ino is of the inode in memory, not on the disk */
	MOSTRACE_NO_GENERATION = 128,	/* generation is not known */
};

/* What the first page of a bio belongs to. */
enum mostrace_origin {
	MOSTRACE_ORIGIN_UNKNOWN = 0,
	MOSTRACE_ORIGIN_FILE = 1,	/* page cache of a file */
	MOSTRACE_ORIGIN_BDEV = 2,	/* page cache of the device: a filesystem's metadata */
	MOSTRACE_ORIGIN_DIRECT = 3,	/* direct IO of a file */
	MOSTRACE_ORIGIN_RAW = 4,	/* direct IO of the block device itself */
	MOSTRACE_ORIGIN_JOURNAL = 5,	/* a jbd2 block, see mostrace_jbd2 */
	MOSTRACE_ORIGIN_EMPTY = 6,	/* no data: a flush or a discard */
	MOSTRACE_ORIGIN_NODE = 7,	/* f2fs's node inode */
	/* f2fs's meta inode: checkpoint, SIT, NAT, SSA; blocks that GC moves unread */
	MOSTRACE_ORIGIN_META = 8,
};

/* The block that a jbd2 bio carries; 1 to 5 are h_blocktype of <linux/jbd2.h>. */
enum mostrace_jbd2 {
	MOSTRACE_JBD2_NONE = 0,
	MOSTRACE_JBD2_DESCRIPTOR = 1,
	MOSTRACE_JBD2_COMMIT = 2,
	MOSTRACE_JBD2_SUPERBLOCK_V1 = 3,
	MOSTRACE_JBD2_SUPERBLOCK = 4,
	MOSTRACE_JBD2_REVOKE = 5,
	MOSTRACE_JBD2_METADATA_COPY = 16,	/* home block is the filesystem's */
	MOSTRACE_JBD2_DATA_COPY = 17,		/* home block is a file's: data=journal */
};

/* What the blocks of a file entry hold. */
enum mostrace_what {
	MOSTRACE_WHAT_UNKNOWN = 0,
	MOSTRACE_WHAT_REGULAR = 1,	/* by i_mode */
	MOSTRACE_WHAT_DIRECTORY = 2,
	MOSTRACE_WHAT_SYMLINK = 3,
	/* An f2fs node block, by its footer; `offset` is its nid * page size. */
	MOSTRACE_WHAT_HOT_NODE = 16,	/* direct node of a directory */
	MOSTRACE_WHAT_WARM_NODE = 17,	/* direct node of another file */
	MOSTRACE_WHAT_FSYNC_NODE = 18,	/* the same, marked by fsync */
	MOSTRACE_WHAT_COLD_NODE = 19,	/* indirect node */
	MOSTRACE_WHAT_NODE = 20,	/* the footer could not be read; ino is 0 */
};

/* What home_sector counts from. */
enum mostrace_home {
	MOSTRACE_HOME_DISK = 0,		/* the start of the traced disk */
	/* that of the filesystem's device, above the disk (dm) or beside it (external journal) */
	MOSTRACE_HOME_FILESYSTEM = 1,
};

/* Common head. 32 bytes. */
struct mostrace_entry {
	__u16 type;	/* enum mostrace_type */
	__u16 size;	/* of the whole record, a multiple of 8 */
	__u32 dev;	/* of the whole disk: major << 20 | minor */
	__u64 time_ns;	/* CLOCK_MONOTONIC at the stage */
	__u64 sector;
	__u32 bytes;
	__u16 cpu;
	__u8 stage;	/* enum mostrace_stage */
	__u8 flags;	/* enum mostrace_flags */
};

/* One bio of a request, and who submitted it. 88 bytes. */
struct mostrace_process {
	struct mostrace_entry head;
	__u64 submit_ns;	/* CLOCK_MONOTONIC at block_bio_queue, or 0 */
	__u64 home_sector;	/* of a journalled copy, else MOSTRACE_NONE */
	__u32 pid;		/* thread */
	__u32 tgid;		/* process */
	__u32 uid;
	__u32 opf;		/* bio->bi_opf */
	__u32 tid;		/* jbd2 transaction, or 0 */
	__u8 origin;		/* enum mostrace_origin */
	__u8 jbd2;		/* enum mostrace_jbd2 */
	__u8 home;		/* enum mostrace_home */
	__u8 pad;
	char comm[MOSTRACE_COMM_LEN];
};

/*
 * A run of a bio that holds consecutive bytes of one file. 72 bytes, then
 * name_len bytes of name (no NUL), padded with NULs to a multiple of 8.
 */
struct mostrace_file {
	struct mostrace_entry head;
	__u64 ino;		/* FAT: i_pos, the place of the directory entry; 0 once unlinked */
	__u64 offset;		/* in the file, in bytes; MOSTRACE_NONE: unknown */
	__u64 parent;		/* inode of the directory, or 0 */
	__u32 generation;
	__u32 s_dev;		/* of the filesystem: major << 20 | minor */
	__u32 nlink;
	__u16 name_len;		/* 0: no dentry was left, or the file was not asked for */
	__u8 origin;		/* MOSTRACE_ORIGIN_FILE, _DIRECT, _JOURNAL or _NODE */
	__u8 what;		/* enum mostrace_what */
	char name[];
};

/*
 * Who dirtied a run of consecutive pages of a bio: the task that made them dirty
 * after they were clean, which the one that submits them need not be. Pages of
 * which that is not known have no such entry. 72 bytes.
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

#endif
