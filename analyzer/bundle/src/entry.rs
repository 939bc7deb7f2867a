// SPDX-License-Identifier: MIT OR Apache-2.0
//! The entries of `bpf/probes/mostrace.h`. An entry is one row of a capture table.
//!
//! A sector is 512 bytes, counted from the start of the whole disk.

use strum::{FromRepr, IntoStaticStr, VariantArray};
use zerocopy::{FromBytes, I64, Immutable, IntoBytes, KnownLayout, LE, U16, U32, U64};

pub mod operation;
mod served;
pub mod stack;

use self::operation::{OperationEntry, OperationRef, TYPE_OPERATION};
pub use self::served::{RawServed, TYPE_SERVED};
use self::stack::{RawStack, StackRef, TYPE_STACK};

/// `MOSTRACE_NONE`: the value of a 64-bit field that is not known.
pub const NONE: u64 = u64::MAX;

macro_rules! open_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$cdoc:meta])* $constant:ident = $value:literal,)+ }) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, Hash,
            FromBytes, IntoBytes, Immutable, KnownLayout,
        )]
        #[repr(transparent)]
        pub struct $name(pub u8);

        impl $name {
            $($(#[$cdoc])* pub const $constant: $name = $name($value);)+

            /// Returns the constant's name in lower case, as tables have it; `unknown` if there is none.
            pub fn word(self) -> String {
                let all = [$(($value, stringify!($constant)),)+];
                let named = all.into_iter().find(|(value, _)| *value == self.0);
                named.map_or("UNKNOWN", |(_, name)| name).to_lowercase()
            }
        }
    };
}

open_enum! {
    /// `enum mostrace_stage`: where in a request's life the entry was made.
    Stage {
        /// The entry was made at block_bio_queue. The kernel's recorder, and recorders of older bundles, use this stage
        /// only for an empty flush.
        QUEUE = 0,
        /// block_rq_insert.
        INSERT = 1,
        /// block_rq_issue of a request that bypassed insertion.
        ISSUE = 2,
        /// block_rq_complete of an empty flush, which is never issued as a request of its own.
        COMPLETE = 3,
    }
}

open_enum! {
    /// `enum mostrace_flags`, a set of bits. A bit's meaning depends on the entry's type.
    Flags {
        /// pid, tgid, uid and comm are not known.
        NO_SUBMITTER = 1,
        /// In a file entry: `i_nlink` was 0.
        UNLINKED = 2,
        /// In a process or dirtier entry: the task is a kernel thread.
        KERNEL_THREAD = 2,
        /// In a dirtier entry: the task moved the pages while it collected f2fs's garbage.
        COLLECTS = 4,
        /// In a dirtier entry: the file had a shared mapping that may be written when the pages were dirtied or queued, so
        /// that others may have changed them unseen.
        MAPPED = 8,
        /// In a file entry: the name is one of several.
        HARDLINKED = 4,
        /// The name is longer than the entry holds.
        NAME_CUT = 8,
        /// The submitter was taken from the bio of which this one is a part or a clone.
        CHAINED = 16,
        /// In a dirtier entry: another bio has written of these pages since they were dirtied.
        AGAIN = 16,
        /// There is a name, but the file was not asked for (`--files`).
        NAME_WITHHELD = 32,
        /// In a process or dirtier entry: the task did so in mount or fsconfig.
        MOUNTS = 32,
        /// In a process or dirtier entry: the task did so in umount2.
        UNMOUNTS = 64,
        /// `ino` is the number of the inode in memory; the filesystem stores no such number.
        INO_PASSING = 64,
        /// `generation` is not known.
        NO_GENERATION = 128,
    }
}

impl Flags {
    /// Returns true if every bit of `other` is set.
    pub fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

open_enum! {
    /// `enum mostrace_origin`: the owner of a bio's first page.
    Origin {
        /// Not recognised.
        UNKNOWN = 0,
        /// Page cache of a file.
        FILE = 1,
        /// Page cache of the block device: a filesystem's metadata.
        BDEV = 2,
        /// Direct IO of a file.
        DIRECT = 3,
        /// Direct IO of the block device itself.
        RAW = 4,
        /// A block of a jbd2 journal.
        JOURNAL = 5,
        /// The bio has no data: it is a flush or a discard.
        EMPTY = 6,
        /// f2fs's node inode.
        NODE = 7,
        /// f2fs's meta inode: checkpoint, SIT, NAT, SSA, and blocks that garbage collection moves without reading them.
        META = 8,
    }
}

open_enum! {
    /// `enum mostrace_what`: the contents of a file entry's blocks.
    What {
        /// Not known.
        UNKNOWN = 0,
        /// Contents of a regular file.
        REGULAR = 1,
        /// Directory entries.
        DIRECTORY = 2,
        /// Target of a symbolic link.
        SYMLINK = 3,
        /// f2fs: direct node of a directory.
        HOT_NODE = 16,
        /// f2fs: direct node of another file.
        WARM_NODE = 17,
        /// f2fs: direct node of another file, marked by fsync.
        FSYNC_NODE = 18,
        /// f2fs: indirect node.
        COLD_NODE = 19,
        /// f2fs: a node whose footer could not be read.
        NODE = 20,
    }
}

open_enum! {
    /// `enum mostrace_jbd2`: the kind of block that a jbd2 bio carries; 1 to 5 are `h_blocktype`.
    Jbd2 {
        /// Not a journal block, or a journal block without a header.
        NONE = 0,
        /// JBD2_DESCRIPTOR_BLOCK.
        DESCRIPTOR = 1,
        /// JBD2_COMMIT_BLOCK.
        COMMIT = 2,
        /// JBD2_SUPERBLOCK_V1.
        SUPERBLOCK_V1 = 3,
        /// JBD2_SUPERBLOCK_V2.
        SUPERBLOCK = 4,
        /// JBD2_REVOKE_BLOCK.
        REVOKE = 5,
        /// A copy of a metadata block.
        METADATA_COPY = 16,
        /// A copy of a file's block (data=journal).
        DATA_COPY = 17,
    }
}

open_enum! {
    /// `enum mostrace_home`: the device from whose start a home sector counts.
    Home {
        /// The start of the traced disk.
        DISK = 0,
        /// The start of the filesystem's own device, which is a mapped device above the traced disk, or another device
        /// if the traced one holds an external journal.
        FILESYSTEM = 1,
    }
}

open_enum! {
    /// `enum mostrace_contents`: the kind of an ext4 metadata block, recognised by its bytes.
    Contents {
        /// The bytes were not examined.
        UNKNOWN = 0,
        /// None of the kinds below.
        OTHER = 1,
        /// An extent block.
        EXTENTS = 2,
        /// A block of extended attributes.
        XATTR = 3,
        /// Directory entries, or the index of a directory.
        DIRECTORY = 4,
    }
}

/// The value of a process or user id that is not known, for example because the thread had ended when it was looked up.
pub const UNKNOWN_ID: u32 = u32::MAX;
/// `MOSTRACE_PROCESS`.
pub const TYPE_PROCESS: u16 = 1;
/// `MOSTRACE_FILE`.
pub const TYPE_FILE: u16 = 2;
/// `MOSTRACE_DIRTIER`.
pub const TYPE_DIRTIER: u16 = 4;

/// `MOSTRACE_HANDLE`.
pub const TYPE_HANDLE: u16 = 5;
/// `MOSTRACE_DIRTIED`.
pub const TYPE_DIRTIED: u16 = 6;
/// `MOSTRACE_CALL`.
pub const TYPE_CALL: u16 = 7;
/// `MOSTRACE_FREED`.
pub const TYPE_FREED: u16 = 8;
/// `MOSTRACE_F2FS`.
pub const TYPE_F2FS: u16 = 9;
/// `MOSTRACE_FORK`.
pub const TYPE_FORK: u16 = 10;
/// `MOSTRACE_CGROUP`.
pub const TYPE_CGROUP: u16 = 12;
/// `MOSTRACE_COMM`.
pub const TYPE_COMM: u16 = 15;
/// `MOSTRACE_LIKE`: the short form of an entry that is like an earlier one of its table.
pub const TYPE_LIKE: u16 = 16;

/// `struct mostrace_entry`: the head that every entry starts with.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawHead {
    /// The entry's type: one of the `TYPE_` constants.
    pub kind: U16<LE>,
    /// Length of the whole record in bytes, a multiple of 8.
    pub size: U16<LE>,
    /// The disk, major << 20 | minor.
    pub dev: U32<LE>,
    /// CLOCK_MONOTONIC when the event of `stage` happened, ns.
    pub time_ns: U64<LE>,
    /// First sector, 512 bytes each, counted from the start of the whole disk.
    pub sector: U64<LE>,
    /// Length in bytes.
    pub bytes: U32<LE>,
    /// The CPU on which the probe ran.
    pub cpu: U16<LE>,
    /// The stage at which the entry was made.
    pub stage: Stage,
    /// Flags, as bits.
    pub flags: Flags,
}

/// `struct mostrace_process`: the task that submitted a bio.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawProcess {
    /// Common head.
    pub head: RawHead,
    /// CLOCK_MONOTONIC at block_bio_queue, ns; 0 if not known.
    pub submit_ns: U64<LE>,
    /// For a journalled copy: the first sector of its home; otherwise [`NONE`].
    pub home_sector: U64<LE>,
    /// Thread.
    pub pid: U32<LE>,
    /// Process.
    pub tgid: U32<LE>,
    /// User.
    pub uid: U32<LE>,
    /// `bio->bi_opf`.
    pub opf: U32<LE>,
    /// The jbd2 transaction; 0 if none.
    pub tid: U32<LE>,
    /// The owner of the bio's first page.
    pub origin: Origin,
    /// The kind of jbd2 block that the bio carries.
    pub jbd2: Jbd2,
    /// The device from whose start [`RawProcess::home_sector`] counts.
    pub home: Home,
    /// The kind of metadata block, recognised by its bytes.
    pub contents: Contents,
    /// `task->comm`, NUL-padded.
    pub comm: [u8; 16],
}

/// `struct mostrace_file` without the name: the file to which a run of a bio belongs.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawFile {
    /// Common head.
    pub head: RawHead,
    /// Inode number; on FAT `i_pos`, the position of the directory entry, and 0 once the file is unlinked.
    pub ino: U64<LE>,
    /// Offset in the file, bytes, or [`NONE`]. For an f2fs node: its node id times the page size.
    pub offset: U64<LE>,
    /// Inode number of the directory; 0 if not known.
    pub parent: U64<LE>,
    /// `i_generation`.
    pub generation: U32<LE>,
    /// The filesystem, major << 20 | minor.
    pub s_dev: U32<LE>,
    /// `i_nlink`.
    pub nlink: U32<LE>,
    /// Length of the name in bytes; 0 if the inode had no dentry left, or if the file was not asked for.
    pub name_len: U16<LE>,
    /// The pages' owner: page cache, direct IO, journal or f2fs node.
    pub origin: Origin,
    /// The kind of contents.
    pub what: What,
}

/// `struct mostrace_dirtier`: the task that dirtied a run of a bio's pages.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawDirtier {
    /// Common head.
    pub head: RawHead,
    /// CLOCK_MONOTONIC when the run's first page became dirty, ns.
    pub dirty_ns: U64<LE>,
    /// Thread.
    pub pid: U32<LE>,
    /// Process.
    pub tgid: U32<LE>,
    /// User.
    pub uid: U32<LE>,
    /// Zero.
    pub pad: U32<LE>,
    /// `task->comm`, NUL-padded.
    pub comm: [u8; 16],
}

/// `struct mostrace_handle`: one jbd2 handle, which ended at `head.time_ns`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawHandle {
    /// Common head; its flags are [`handle_flags`], and its sector is the number of the stack, [`RawStack::id`], or [`NONE`].
    pub head: RawHead,
    /// The handle's id, unique within this recording.
    pub id: U64<LE>,
    /// CLOCK_MONOTONIC when the handle began, ns; 0 if not known.
    pub start_ns: U64<LE>,
    /// The inode for which the handle began, or which it marked dirty first; 0 if none.
    pub ino: U64<LE>,
    /// Index into `manifest.functions`, or [`NONE`].
    pub function: U64<LE>,
    /// `i_generation` of `ino`.
    pub generation: U32<LE>,
    /// The filesystem, major << 20 | minor.
    pub s_dev: U32<LE>,
    /// jbd2 transaction.
    pub tid: U32<LE>,
    /// Thread.
    pub pid: U32<LE>,
    /// Process.
    pub tgid: U32<LE>,
    /// User.
    pub uid: U32<LE>,
    /// Number of buffers that the handle asked for.
    pub requested: U32<LE>,
    /// Number of buffers that this handle was the first in its transaction to modify.
    pub dirtied: U32<LE>,
    /// Number of those that have an entry in the dirtied table.
    pub named: U32<LE>,
    /// `h_type`: ext4's `EXT4_HT_…`.
    pub kind: U16<LE>,
    /// The system call during which the handle ran, as a [`CallKind`].
    pub call: U16<LE>,
    /// `task->comm`, NUL-padded.
    pub comm: [u8; 16],
}

/// `struct mostrace_dirtied`: a block that a handle was the first in its transaction to modify.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawDirtied {
    /// Common head: sector and bytes are those of the home block, the flags are [`dirtied_flags`].
    pub head: RawHead,
    /// The handle's id, [`RawHandle::id`].
    pub handle: U64<LE>,
    /// jbd2 transaction.
    pub tid: U32<LE>,
    /// The device from whose start `head.sector` counts.
    pub home: Home,
    /// Zero.
    pub pad: [u8; 3],
}

/// `struct mostrace_call`: a system call, which returned at `head.time_ns`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawCall {
    /// Common head; its flags are [`call_flags`], and its sector is the number of the stack, [`RawStack::id`], or [`NONE`].
    pub head: RawHead,
    /// CLOCK_MONOTONIC when the call was made, ns.
    pub start_ns: U64<LE>,
    /// Inode number.
    pub ino: U64<LE>,
    /// Offset in the file at which the call began, bytes, or [`NONE`].
    pub offset: U64<LE>,
    /// Bytes written, or the length of the range that the call names.
    pub bytes: U64<LE>,
    /// The call's return value: bytes, 0, or a negative errno.
    pub result: I64<LE>,
    /// If [`call_flags::FIRST`] is set: the first bytes of a short write, or of a write at the beginning of a file.
    /// [`call_flags::DATABASE`] gives them another meaning.
    pub first_bytes: [u8; 8],
    /// `i_generation` of `ino`.
    pub generation: U32<LE>,
    /// The filesystem, major << 20 | minor.
    pub s_dev: U32<LE>,
    /// Thread.
    pub pid: U32<LE>,
    /// Process.
    pub tgid: U32<LE>,
    /// User.
    pub uid: U32<LE>,
    /// The kind of call, as a [`CallKind`].
    pub kind: U16<LE>,
    /// For f2fs's fsync: `enum cp_reason_type`, the reason why it wrote a checkpoint; 0 if it wrote none.
    pub cp_reason: U16<LE>,
    /// `task->comm`, NUL-padded.
    pub comm: [u8; 16],
}

/// `enum mostrace_handle_flags`: the flags in a handle's head.
pub mod handle_flags {
    use super::Flags;

    /// The handle asked for the commit.
    pub const SYNC: Flags = Flags(1);
    /// Another handle of the transaction was open at the same time, which may have dirtied blocks that are attributed
    /// to this one.
    pub const OVERLAP: Flags = Flags(2);
    /// The handle continues in another transaction; the number of blocks that it dirtied in this one is not known.
    pub const RESTARTED: Flags = Flags(4);
    /// The handle began before the recording.
    pub const UNSEEN: Flags = Flags(8);
    /// The handle belongs to a kernel thread.
    pub const KERNEL: Flags = Flags(16);
    /// Each thread has an entry for each function and inode that it began a handle for in the transaction. Without it, a
    /// process may have an entry for the first of its handles that dirtied nothing, and for those that did.
    pub const EACH_CAUSE: Flags = Flags(64);
    /// The handle was the first of its transaction: no handle of the transaction is missing before it.
    pub const OPENS: Flags = Flags(128);
    /// The handle gave blocks back: it may have modified more blocks than `dirtied` says.
    pub const FORGOT: Flags = Flags(32);
}

/// `enum mostrace_call_flags`: the flags in a call's head.
pub mod call_flags {
    use super::Flags;

    /// `first_bytes` is filled in.
    pub const FIRST: Flags = Flags(1);
    /// The call wrote the first page of an SQLite database. `first_bytes` then holds the page's bytes 24 to 27 (the
    /// change counter) and 16 to 19 (the page size and the versions for writing and reading).
    pub const DATABASE: Flags = Flags(2);
    /// The call asked for durability, beside what it did: a write with `O_SYNC`, `RWF_DSYNC`, `chattr +S` and the like, or a call
    /// whose handle waited for its commit. What it did was durable when it returned.
    pub const THROUGH: Flags = Flags(4);
    /// A request to io_uring that posts no completion unless it fails, so that nothing tells its end, or a call that had not
    /// returned when the recording ended: it may go on after `head.time_ns`. Its offset and bytes are as asked for, and its result
    /// is 0. If a request fails, another entry without this flag follows.
    pub const OPEN_END: Flags = Flags(8);
    /// The filesystem reported the write, the sync, the truncation or the fallocate, which is part of no call that has an entry. `start_ns`
    /// of a sync is its beginning; otherwise it is `head.time_ns`: when the write ended, or at some time within the truncation or the
    /// fallocate. With [`THROUGH`], a call that has no other entry, whose handle ended at `head.time_ns`.
    pub const PART: Flags = Flags(16);
    /// An unlink that is part of the rename whose entry precedes this one: the rename replaced the file.
    pub const REPLACED: Flags = Flags(32);
    /// `first_bytes` begins with the mode of a fallocate, 32 bits.
    pub const MODE: Flags = Flags(64);
}

/// `enum mostrace_dirtied_flags`: the flags in a dirtied block's head.
pub mod dirtied_flags {
    use super::Flags;

    /// The block was found among those that joined `t_buffers` last.
    pub const NEW: Flags = Flags(1);
    /// The block was still held by the committing transaction.
    pub const KEPT: Flags = Flags(2);
    /// Every modification is recorded: there is an entry for each thread, function and inode whose handle modified the block.
    /// Without it, there is one for the first modification.
    pub const EACH: Flags = Flags(4);
}

/// `enum mostrace_call_kind`: a system call by which a file or its metadata is changed or written out.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromRepr, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "snake_case")]
#[repr(u16)]
pub enum CallKind {
    /// Another call, the work of a kernel thread itself, or a kind that only a newer recorder knows.
    #[default]
    Other = 0,
    /// write, pwrite64, writev, pwritev, pwritev2
    Write = 1,
    /// fsync
    Fsync = 2,
    /// fdatasync
    Fdatasync = 3,
    /// sync_file_range
    SyncRange = 4,
    /// msync
    Msync = 5,
    /// sync, syncfs, and the ioctls `FIFREEZE` and `EXT4_IOC_CHECKPOINT`
    Sync = 6,
    /// unlink, unlinkat, rmdir
    Unlink = 7,
    /// rename, renameat, renameat2
    Rename = 8,
    /// truncate, ftruncate
    Truncate = 9,
    /// fallocate, and the ioctls that do the same
    Fallocate = 10,
    /// open, openat, openat2, creat
    Open = 11,
    /// close
    Close = 12,
    /// mkdir, mkdirat
    Mkdir = 13,
    /// link, linkat, symlink, symlinkat, mknod, mknodat
    Link = 14,
    /// setxattr, removexattr and the like
    Xattr = 15,
    /// read, pread64, readv, getdents and the like
    Read = 16,
    /// io_uring_enter
    Uring = 17,
    /// chmod, chown, utimensat and the like
    Attr = 18,
    /// mount, fsconfig; in older recordings also umount2
    Mount = 19,
    /// sendfile, splice, copy_file_range
    Splice = 20,
    /// f2fs's ioctls that collect garbage
    Gc = 21,
    /// f2fs's ioctl to write a checkpoint
    Checkpoint = 22,
    /// f2fs's ioctl that begins an atomic write: data written from then on waits for the commit
    AtomicStart = 23,
    /// f2fs's ioctl that commits an atomic write, making all of it durable at once
    AtomicCommit = 24,
    /// f2fs's ioctl that discards an atomic write
    AtomicAbort = 25,
    /// mmap: a shared mapping of a file that is open for writing
    Mmap = 26,
    /// umount2
    Umount = 27,
    /// In a handle: mount or fsconfig, while it made the handle's own filesystem ready
    FillSuper = 28,
    /// No call, but what a filesystem wrote within a call that does not write: an overlay copied a file up
    CopyUp = 29,
}

impl CallKind {
    /// Returns the kind with this number, [`CallKind::Other`] for unknown numbers.
    pub fn of(number: u16) -> CallKind {
        CallKind::from_repr(number).unwrap_or_default()
    }
}

/// `struct mostrace_freed`: metadata blocks that a file freed at `head.time_ns`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawFreed {
    /// Common head.
    pub head: RawHead,
    /// Inode number.
    pub ino: U64<LE>,
    /// `i_generation` of `ino`.
    pub generation: U32<LE>,
    /// The filesystem, major << 20 | minor.
    pub s_dev: U32<LE>,
    /// The jbd2 transaction; 0 on a filesystem without a journal.
    pub tid: U32<LE>,
    /// The device from whose start `head.sector` counts.
    pub home: Home,
    /// Zero.
    pub pad: [u8; 3],
}

/// `enum mostrace_f2fs_step`: a step of a checkpoint or of garbage collection in f2fs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRepr)]
#[repr(u16)]
pub enum Step {
    /// The task asks for a checkpoint and waits for it.
    Asked = 1,
    /// A checkpoint begins.
    Checkpoint = 2,
    /// The checkpoint has been written.
    Written = 3,
    /// The task begins to collect garbage.
    Gc = 4,
    /// The task has finished collecting garbage.
    Collected = 5,
}

/// `CP_…` of fs/f2fs/f2fs.h: the reasons for a checkpoint, a set of bits.
pub mod cp {
    /// The filesystem is unmounted.
    pub const UMOUNT: u16 = 0x01;
    /// The filesystem is unmounted with `fastboot`, so that the next mount is quick.
    pub const FASTBOOT: u16 = 0x02;
    /// A task asked for the checkpoint.
    pub const SYNC: u16 = 0x04;
    /// Files were recovered when it was mounted.
    pub const RECOVERY: u16 = 0x08;
    /// Free blocks are discarded (`fstrim`).
    pub const DISCARD: u16 = 0x10;
    /// Free blocks have all been discarded (`fstrim`).
    pub const TRIMMED: u16 = 0x20;
    /// Checkpoints are switched off (`checkpoint=disable`).
    pub const PAUSE: u16 = 0x40;
    /// The filesystem is made smaller or larger.
    pub const RESIZE: u16 = 0x80;
}

/// `struct mostrace_f2fs`: a step of f2fs, and the task that took it.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawF2fs {
    /// Common head; [`Flags::KERNEL_THREAD`] may be set.
    pub head: RawHead,
    /// The filesystem, major << 20 | minor.
    pub s_dev: U32<LE>,
    /// Thread.
    pub pid: U32<LE>,
    /// Process.
    pub tgid: U32<LE>,
    /// User.
    pub uid: U32<LE>,
    /// The step, as a [`Step`].
    pub step: U16<LE>,
    /// For a checkpoint: its reasons, bits of [`cp`].
    pub reason: U16<LE>,
    /// The system call that the task is in, as a [`CallKind`].
    pub call: U16<LE>,
    /// Zero.
    pub pad: U16<LE>,
    /// `task->comm`, NUL-padded.
    pub comm: [u8; 16],
}

/// `enum mostrace_fork_flags`: the flags in a fork's head.
pub mod fork_flags {
    use super::Flags;

    /// The new process belongs to the recorded command's process tree.
    pub const OF_COMMAND: Flags = Flags(1);
}

/// `struct mostrace_fork`: a process that was started at `head.time_ns`, and its parent.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawFork {
    /// Common head; its flags are [`fork_flags`].
    pub head: RawHead,
    /// The id of the new process.
    pub tgid: U32<LE>,
    /// The id of the process that called fork, clone or vfork.
    pub parent: U32<LE>,
}

/// `struct mostrace_cgroup`: the cgroup of the unified hierarchy that a process was in at `head.time_ns`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawCgroup {
    /// Common head; [`Flags::NAME_CUT`] may be set.
    pub head: RawHead,
    /// The inode number of the cgroup's folder.
    pub id: U64<LE>,
    /// Process.
    pub tgid: U32<LE>,
    /// Length of the path that follows, bytes.
    pub path_len: U16<LE>,
    /// Zero.
    pub pad: U16<LE>,
}

/// `enum mostrace_comm_flags`: the flags in the head of a process's name.
pub mod comm_flags {
    use super::Flags;

    /// The process began at `head.time_ns`.
    pub const STARTED: Flags = Flags(1);
    /// The process had another name before.
    pub const CHANGED: Flags = Flags(2);
}

/// `struct mostrace_comm`: the name of a process, which is that of its main thread, from `head.time_ns` on.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawComm {
    /// Common head; its flags are [`comm_flags`].
    pub head: RawHead,
    /// Process.
    pub tgid: U32<LE>,
    /// Zero.
    pub pad: U32<LE>,
    /// `task->comm`, NUL-padded.
    pub comm: [u8; 16],
}

// The little-endian field types have alignment 1, so entries are read in place. The C header asserts the same sizes.
const _: () = assert!(size_of::<RawHead>() == 32);
const _: () = assert!(size_of::<RawProcess>() == 88);
const _: () = assert!(size_of::<RawFile>() == 72);
const _: () = assert!(size_of::<RawDirtier>() == 72);
const _: () = assert!(size_of::<RawHandle>() == 120);
const _: () = assert!(size_of::<RawDirtied>() == 48);
const _: () = assert!(size_of::<RawFreed>() == 56);
const _: () = assert!(size_of::<RawCall>() == 120);
const _: () = assert!(size_of::<RawF2fs>() == 72);
const _: () = assert!(size_of::<RawFork>() == 40);
const _: () = assert!(size_of::<RawCgroup>() == 48);
const _: () = assert!(size_of::<RawComm>() == 56);

/// A file entry and its name, borrowed from a buffer.
#[derive(Clone, Copy, Debug)]
pub struct FileRef<'a> {
    /// The fixed part.
    pub raw: &'a RawFile,
    /// The last path component as raw bytes; empty if the inode had no dentry left or the file was not asked for.
    pub name: &'a [u8],
}

/// A cgroup entry and its path, borrowed from a buffer.
#[derive(Clone, Copy, Debug)]
pub struct CgroupRef<'a> {
    /// The fixed part.
    pub raw: &'a RawCgroup,
    /// The path as it is recorded: `name/folder/folder/`; empty for the hierarchy's root.
    pub path: &'a [u8],
}

impl CgroupRef<'_> {
    /// Returns the path from the hierarchy's root, with a leading slash; `/` for the root itself. If the recorder could not write
    /// all of it, what is nearest to the root is missing, and the path begins with `…`.
    #[must_use]
    pub fn whole_path(&self) -> Vec<u8> {
        let mut path = match self.raw.head.flags.has(Flags::NAME_CUT) {
            true => "…".as_bytes().to_vec(),
            false => Vec::new(),
        };
        let names = self.path.strip_suffix(b"/").unwrap_or(self.path);
        for name in names.rsplit(|&byte| byte == b'/') {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        path
    }
}

impl<'a> CgroupRef<'a> {
    fn decode(record: &'a [u8]) -> Result<CgroupRef<'a>, String> {
        let (raw, rest) =
            RawCgroup::ref_from_prefix(record).map_err(|_| "shorter than a cgroup entry")?;
        let path = rest.get(..usize::from(raw.path_len.get()));
        let path = path.ok_or("path longer than the record")?;
        Ok(CgroupRef { raw, path })
    }
}

/// Defines the two forms of a row, borrowed and owned: for each entry of fixed size the variant, its type and its number.
macro_rules! entries {
    ($($(#[$doc:meta])* $name:ident($raw:ident) = $kind:ident,)+) => {
        /// One row of a table, borrowed from a buffer.
        #[derive(Clone, Copy, Debug)]
        pub enum EntryRef<'a> {
            $($(#[$doc])* $name(&'a $raw),)+
            /// The file to which a run of a bio belongs.
            File(FileRef<'a>),
            /// The cgroup of a process.
            Cgroup(CgroupRef<'a>),
            /// A stack.
            Stack(StackRef<'a>),
            /// A call that changed the filesystem.
            Operation(OperationRef<'a>),
        }

        impl<'a> EntryRef<'a> {
            /// Returns the entry's common head.
            pub fn head(&self) -> &'a RawHead {
                match self {
                    $(EntryRef::$name(raw) => &raw.head,)+
                    EntryRef::File(file) => &file.raw.head,
                    EntryRef::Cgroup(cgroup) => &cgroup.raw.head,
                    EntryRef::Stack(stack) => &stack.raw.head,
                    EntryRef::Operation(operation) => &operation.raw.head,
                }
            }

            fn of_kind(kind: u16, record: &'a [u8]) -> Result<EntryRef<'a>, String> {
                match kind {
                    $($kind => fixed(record, stringify!($name)).map(EntryRef::$name),)+
                    TYPE_FILE => FileRef::decode(record).map(EntryRef::File),
                    TYPE_CGROUP => CgroupRef::decode(record).map(EntryRef::Cgroup),
                    TYPE_STACK => StackRef::decode(record).map(EntryRef::Stack),
                    TYPE_OPERATION => OperationRef::decode(record).map(EntryRef::Operation),
                    other => Err(format!("unknown entry type {other}")),
                }
            }
        }

        /// One row of a table, owned.
        #[derive(Clone, Debug)]
        pub enum Entry {
            $($(#[$doc])* $name($raw),)+
            /// The file to which a run of a bio belongs.
            File(FileEntry),
            /// The cgroup of a process, and its path, see [`CgroupRef::path`].
            Cgroup(RawCgroup, Vec<u8>),
            /// A stack, and its frames as text, see [`StackRef::text`].
            Stack(RawStack, Vec<u8>),
            /// A call that changed the filesystem.
            Operation(OperationEntry),
        }

        impl Entry {
            /// Returns the entry's common head.
            pub fn head(&self) -> &RawHead {
                match self {
                    $(Entry::$name(raw) => &raw.head,)+
                    Entry::File(file) => &file.raw.head,
                    Entry::Cgroup(raw, _) => &raw.head,
                    Entry::Stack(raw, _) => &raw.head,
                    Entry::Operation(operation) => &operation.raw.head,
                }
            }
        }

        impl From<EntryRef<'_>> for Entry {
            fn from(entry: EntryRef<'_>) -> Entry {
                match entry {
                    $(EntryRef::$name(raw) => Entry::$name(*raw),)+
                    EntryRef::File(file) => Entry::File(file.into()),
                    EntryRef::Cgroup(CgroupRef { raw, path }) => {
                        Entry::Cgroup(*raw, path.to_vec())
                    }
                    EntryRef::Stack(StackRef { raw, text }) => Entry::Stack(*raw, text.to_vec()),
                    EntryRef::Operation(operation) => Entry::Operation(operation.into()),
                }
            }
        }
    };
}

entries! {
    /// The task that submitted a bio.
    Process(RawProcess) = TYPE_PROCESS,
    /// The task that dirtied a run of a bio's pages.
    Dirtier(RawDirtier) = TYPE_DIRTIER,
    /// A handle of a journal.
    Handle(RawHandle) = TYPE_HANDLE,
    /// A block that a handle dirtied.
    Dirtied(RawDirtied) = TYPE_DIRTIED,
    /// A system call.
    Call(RawCall) = TYPE_CALL,
    /// Metadata blocks that a file freed.
    Freed(RawFreed) = TYPE_FREED,
    /// A step of f2fs's checkpoints or garbage collection.
    F2fs(RawF2fs) = TYPE_F2FS,
    /// A process that was started.
    Fork(RawFork) = TYPE_FORK,
    /// The name of a process.
    Comm(RawComm) = TYPE_COMM,
    /// A FUSE request that was served.
    Served(RawServed) = TYPE_SERVED,
}

impl<'a> EntryRef<'a> {
    /// Decodes one whole record as the kernel's side produced it.
    ///
    /// # Errors
    /// Returns a description of what is wrong with the bytes; it does not name the file.
    pub fn decode(record: &'a [u8]) -> Result<EntryRef<'a>, String> {
        let (head, _) = RawHead::ref_from_prefix(record).map_err(|_| "shorter than a head")?;
        if usize::from(head.size.get()) != record.len() {
            return Err(format!(
                "size {} of a {}-byte record",
                head.size,
                record.len()
            ));
        }
        EntryRef::of_kind(head.kind.get(), record)
    }
}

impl<'a> FileRef<'a> {
    fn decode(record: &'a [u8]) -> Result<FileRef<'a>, String> {
        let (raw, rest) =
            RawFile::ref_from_prefix(record).map_err(|_| "shorter than a file entry")?;
        let name = rest.get(..usize::from(raw.name_len.get()));
        let name = name.ok_or("name longer than the record")?;
        Ok(FileRef { raw, name })
    }
}

impl Entry {
    /// Decodes one whole record into an owned entry; see [`EntryRef::decode`].
    ///
    /// # Errors
    /// Returns a description of what is wrong with the bytes; it does not name the file.
    pub fn decode(record: &[u8]) -> Result<Entry, String> {
        EntryRef::decode(record).map(Entry::from)
    }
}

/// Casts a record to an entry type of fixed size, without copying.
fn fixed<'a, T: FromBytes + Immutable + KnownLayout>(
    record: &'a [u8],
    name: &str,
) -> Result<&'a T, String> {
    let raw = T::ref_from_prefix(record);
    let (raw, _) = raw.map_err(|_| format!("shorter than a {} entry", name.to_lowercase()))?;
    Ok(raw)
}

/// A file entry that owns its name.
#[derive(Clone, Debug)]
pub struct FileEntry {
    /// The fixed part.
    pub raw: RawFile,
    /// The name, see [`FileRef::name`].
    pub name: Vec<u8>,
}

impl From<FileRef<'_>> for FileEntry {
    fn from(from: FileRef<'_>) -> FileEntry {
        FileEntry {
            raw: *from.raw,
            name: from.name.to_vec(),
        }
    }
}
