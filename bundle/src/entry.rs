// SPDX-License-Identifier: MIT OR Apache-2.0
//! The entries of `bpf/mostrace.h`: one row of a capture table.
//!
//! A sector is 512 bytes, counted from the start of the whole disk.

use strum::{FromRepr, IntoStaticStr};
use zerocopy::{FromBytes, I64, Immutable, IntoBytes, KnownLayout, LE, U16, U32, U64};

/// `MOSTRACE_NONE`: a 64-bit field that is not known.
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
        }
    };
}

open_enum! {
    /// `enum mostrace_stage`: where in a request's life the entry was made.
    Stage {
        /// block_bio_queue. Of the kernel's recorder, and in bundles of before, an empty flush alone.
        QUEUE = 0,
        /// block_rq_insert.
        INSERT = 1,
        /// block_rq_issue, where insertion was bypassed.
        ISSUE = 2,
        /// block_rq_complete: an empty flush, which is not issued as itself.
        COMPLETE = 3,
    }
}

impl Stage {
    /// The word used in the tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Stage::QUEUE => "queue",
            Stage::INSERT => "insert",
            Stage::ISSUE => "issue",
            Stage::COMPLETE => "complete",
            _ => "unknown",
        }
    }
}

open_enum! {
    /// `enum mostrace_flags`, a set of bits.
    Flags {
        /// pid, tgid, uid and comm are not known.
        NO_SUBMITTER = 1,
        /// Of a file: `i_nlink` was 0.
        UNLINKED = 2,
        /// Of a process or a dirtier: a kernel thread.
        KERNEL_THREAD = 2,
        /// Of a dirtier: it collected f2fs's garbage, and moved the pages.
        COLLECTS = 4,
        /// The name is one of several.
        HARDLINKED = 4,
        /// The name is longer than the entry holds.
        NAME_CUT = 8,
        /// The submitter is that of the bio which this one is a part or clone of.
        CHAINED = 16,
        /// There is a name, but the file was not asked for (`--files`).
        NAME_WITHHELD = 32,
        /// `ino` is that of the inode in memory: the filesystem keeps no such number.
        INO_PASSING = 64,
        /// `generation` is not known.
        NO_GENERATION = 128,
    }
}

impl Flags {
    /// Whether every bit of `other` is set.
    pub fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

open_enum! {
    /// `enum mostrace_origin`: what the first page of a bio belongs to.
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
        /// A jbd2 block.
        JOURNAL = 5,
        /// No data: a flush or a discard.
        EMPTY = 6,
        /// f2fs's node inode.
        NODE = 7,
        /// f2fs's meta inode: checkpoint, SIT, NAT, SSA, and blocks that GC moves unread.
        META = 8,
    }
}

open_enum! {
    /// `enum mostrace_what`: what the blocks of a file entry hold.
    What {
        /// Not told.
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
        /// f2fs: the same, marked by fsync.
        FSYNC_NODE = 18,
        /// f2fs: indirect node.
        COLD_NODE = 19,
        /// f2fs: a node whose footer could not be read.
        NODE = 20,
    }
}

open_enum! {
    /// `enum mostrace_jbd2`: the block that a jbd2 bio carries; 1 to 5 are `h_blocktype`.
    Jbd2 {
        /// Not a journal block, or a block without header.
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
    /// `enum mostrace_home`: what `home_sector` counts from.
    Home {
        /// The start of the traced disk.
        DISK = 0,
        /// The start of the filesystem's own device: one above the traced disk (device mapper), or one
        /// beside it (the journal is external).
        FILESYSTEM = 1,
    }
}

open_enum! {
    /// `enum mostrace_contents`: what ext4's metadata is by its own bytes.
    Contents {
        /// Not looked at.
        UNKNOWN = 0,
        /// None of these.
        OTHER = 1,
        /// An extent block.
        EXTENTS = 2,
        /// A block of extended attributes.
        XATTR = 3,
        /// Directory entries, or the index of a directory.
        DIRECTORY = 4,
    }
}

/// Of a process or a user: not known, as a thread that had ended when it was asked for.
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

/// `struct mostrace_entry`: the head that every entry starts with.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawHead {
    /// One of the `TYPE_` constants.
    pub kind: U16<LE>,
    /// Bytes of the whole record, a multiple of 8.
    pub size: U16<LE>,
    /// The disk, major << 20 | minor.
    pub dev: U32<LE>,
    /// CLOCK_MONOTONIC at the stage.
    pub time_ns: U64<LE>,
    /// First sector.
    pub sector: U64<LE>,
    /// Length in bytes.
    pub bytes: U32<LE>,
    /// CPU of the probe.
    pub cpu: U16<LE>,
    /// Where the entry was made.
    pub stage: Stage,
    /// Bits.
    pub flags: Flags,
}

/// `struct mostrace_process`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawProcess {
    /// Common head.
    pub head: RawHead,
    /// CLOCK_MONOTONIC at block_bio_queue, or 0.
    pub submit_ns: U64<LE>,
    /// Home of a journalled copy, or [`NONE`].
    pub home_sector: U64<LE>,
    /// Thread.
    pub pid: U32<LE>,
    /// Process.
    pub tgid: U32<LE>,
    /// User.
    pub uid: U32<LE>,
    /// `bio->bi_opf`.
    pub opf: U32<LE>,
    /// jbd2 transaction, or 0.
    pub tid: U32<LE>,
    /// What the first page belongs to.
    pub origin: Origin,
    /// The jbd2 block it carries.
    pub jbd2: Jbd2,
    /// What [`RawProcess::home_sector`] counts from.
    pub home: Home,
    /// What the block is by its own bytes.
    pub contents: Contents,
    /// `task->comm`, NUL-padded.
    pub comm: [u8; 16],
}

/// `struct mostrace_file` without the name.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawFile {
    /// Common head.
    pub head: RawHead,
    /// Inode number; on FAT `i_pos`, the place of the directory entry, and 0 once unlinked.
    pub ino: U64<LE>,
    /// Offset in the file, bytes, or [`NONE`]; of an f2fs node its number times the page size.
    pub offset: U64<LE>,
    /// Inode number of the directory, or 0.
    pub parent: U64<LE>,
    /// `i_generation`.
    pub generation: U32<LE>,
    /// The filesystem, major << 20 | minor.
    pub s_dev: U32<LE>,
    /// `i_nlink`.
    pub nlink: U32<LE>,
    /// Length of the name; 0 if no dentry was left, or the file was not asked for.
    pub name_len: U16<LE>,
    /// Page cache, direct IO, journal or f2fs node.
    pub origin: Origin,
    /// What the blocks hold.
    pub what: What,
}

/// `struct mostrace_dirtier`: who made a run of a bio's pages dirty.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawDirtier {
    /// Common head.
    pub head: RawHead,
    /// CLOCK_MONOTONIC when the run's first page was made dirty.
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

/// `struct mostrace_handle`: one handle of a journal, which ended at `head.time_ns`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawHandle {
    /// Common head; its flags are [`handle_flags`].
    pub head: RawHead,
    /// The handle's own, in this recording.
    pub id: U64<LE>,
    /// CLOCK_MONOTONIC when it began, or 0.
    pub start_ns: U64<LE>,
    /// The inode that it began for or marked dirty first, or 0.
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
    /// Buffers that were asked for.
    pub requested: U32<LE>,
    /// Buffers that it was the first in its transaction to modify.
    pub dirtied: U32<LE>,
    /// Of them, those that have an entry in the dirtied table.
    pub named: U32<LE>,
    /// `h_type`: ext4's `EXT4_HT_…`.
    pub kind: U16<LE>,
    /// The system call that it was part of: [`CallKind`].
    pub call: U16<LE>,
    /// `task->comm`, NUL-padded.
    pub comm: [u8; 16],
}

/// `struct mostrace_dirtied`: a block that a handle was the first in its transaction to modify.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawDirtied {
    /// Common head: sector and bytes are the home block's, the flags [`dirtied_flags`].
    pub head: RawHead,
    /// [`RawHandle::id`].
    pub handle: U64<LE>,
    /// jbd2 transaction.
    pub tid: U32<LE>,
    /// What `head.sector` counts from.
    pub home: Home,
    /// Zero.
    pub pad: [u8; 3],
}

/// `struct mostrace_call`: a system call, which returned at `head.time_ns`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawCall {
    /// Common head; its flags are [`call_flags`].
    pub head: RawHead,
    /// CLOCK_MONOTONIC when it was made.
    pub start_ns: U64<LE>,
    /// Inode number.
    pub ino: U64<LE>,
    /// Where it began in the file, bytes, or [`NONE`].
    pub offset: U64<LE>,
    /// Bytes written, or that a range is long.
    pub bytes: U64<LE>,
    /// What it returned: bytes, 0, or a negative errno.
    pub result: I64<LE>,
    /// The first bytes of a short write, or of one at the beginning of a file, if [`call_flags::FIRST`] is set; or what
    /// [`call_flags::DATABASE`] says.
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
    /// [`CallKind`].
    pub kind: U16<LE>,
    /// Of f2fs's fsync: `enum cp_reason_type`, why it took a checkpoint; 0: it took none.
    pub cp_reason: U16<LE>,
    /// `task->comm`, NUL-padded.
    pub comm: [u8; 16],
}

/// `enum mostrace_handle_flags`, in a handle's head.
pub mod handle_flags {
    use super::Flags;

    /// It asked for the commit.
    pub const SYNC: Flags = Flags(1);
    /// Another handle of the transaction was open meanwhile: what it is said to have dirtied may be that one's.
    pub const OVERLAP: Flags = Flags(2);
    /// It goes on in another transaction: how much it dirtied in this one is not told.
    pub const RESTARTED: Flags = Flags(4);
    /// It began before the recording.
    pub const UNSEEN: Flags = Flags(8);
    /// A kernel thread's.
    pub const KERNEL: Flags = Flags(16);
}

/// `enum mostrace_call_flags`, in a call's head.
pub mod call_flags {
    use super::Flags;

    /// `first_bytes` are told.
    pub const FIRST: Flags = Flags(1);
    /// It wrote the first page of a database of SQLite's: `first_bytes` are its bytes 24 to 27, the change counter, and 16 to
    /// 19, the size of a page and the versions that write and read it.
    pub const DATABASE: Flags = Flags(2);
    /// It wrote to a file that was opened to be written through (`O_SYNC`, `O_DSYNC`): that was durable when it returned.
    pub const THROUGH: Flags = Flags(4);
}

/// `enum mostrace_dirtied_flags`, in a dirtied block's head.
pub mod dirtied_flags {
    use super::Flags;

    /// Found among the last that joined `t_buffers`.
    pub const NEW: Flags = Flags(1);
    /// The committing transaction still had it.
    pub const KEPT: Flags = Flags(2);
}

/// `enum mostrace_call_kind`: a system call by which a file or its metadata is changed or written out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromRepr, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[repr(u16)]
pub enum CallKind {
    /// Another one, a kernel thread's own doing, or of a newer recorder.
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
    /// sync, syncfs
    Sync = 6,
    /// unlink, unlinkat, rmdir
    Unlink = 7,
    /// rename, renameat, renameat2
    Rename = 8,
    /// truncate, ftruncate
    Truncate = 9,
    /// fallocate
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
    /// mount, umount2 and the like
    Mount = 19,
    /// sendfile, splice, copy_file_range
    Splice = 20,
    /// f2fs's ioctl to collect garbage
    Gc = 21,
    /// f2fs's ioctl to write a checkpoint
    Checkpoint = 22,
    /// f2fs's ioctl after which what is written waits for a commit
    AtomicStart = 23,
    /// f2fs's ioctl that makes all of that durable at once
    AtomicCommit = 24,
    /// f2fs's ioctl that throws it away
    AtomicAbort = 25,
}

impl CallKind {
    /// By its number.
    pub fn of(number: u16) -> CallKind {
        CallKind::from_repr(number).unwrap_or_default()
    }
}

/// `struct mostrace_freed`: blocks of metadata that a file gave back, at `head.time_ns`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawFreed {
    /// Common head.
    pub head: RawHead,
    /// Inode number.
    pub ino: U64<LE>,
    /// `i_generation`.
    pub generation: U32<LE>,
    /// The filesystem, major << 20 | minor.
    pub s_dev: U32<LE>,
    /// jbd2 transaction, or 0 without a journal.
    pub tid: U32<LE>,
    /// What `head.sector` counts from.
    pub home: Home,
    /// Zero.
    pub pad: [u8; 3],
}

/// `enum mostrace_f2fs_step`: a step of what f2fs does beside what it is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRepr)]
#[repr(u16)]
pub enum Step {
    /// The task asks for a checkpoint, and waits for it.
    Asked = 1,
    /// A checkpoint begins.
    Checkpoint = 2,
    /// It is written.
    Written = 3,
    /// The task begins to collect garbage.
    Gc = 4,
    /// It ends.
    Collected = 5,
}

/// `CP_…` of fs/f2fs/f2fs.h: what a checkpoint is written for, a set of bits.
pub mod cp {
    /// The filesystem is unmounted.
    pub const UMOUNT: u16 = 0x01;
    /// The same, and the next mount is to be quick (`fastboot`).
    pub const FASTBOOT: u16 = 0x02;
    /// Somebody asked for it.
    pub const SYNC: u16 = 0x04;
    /// Files were recovered when it was mounted.
    pub const RECOVERY: u16 = 0x08;
    /// Free blocks are discarded (`fstrim`).
    pub const DISCARD: u16 = 0x10;
    /// The same, when all have been.
    pub const TRIMMED: u16 = 0x20;
    /// Checkpoints are switched off (`checkpoint=disable`).
    pub const PAUSE: u16 = 0x40;
    /// The filesystem is made smaller or larger.
    pub const RESIZE: u16 = 0x80;
}

/// `struct mostrace_f2fs`: a step of f2fs's, and whose it is.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
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
    /// [`Step`].
    pub step: U16<LE>,
    /// Of a checkpoint: bits of [`cp`].
    pub reason: U16<LE>,
    /// The system call that the task is in: [`CallKind`].
    pub call: U16<LE>,
    /// Zero.
    pub pad: U16<LE>,
    /// `task->comm`, NUL-padded.
    pub comm: [u8; 16],
}

/// `enum mostrace_fork_flags`, in a fork's head.
pub mod fork_flags {
    use super::Flags;

    /// The new process is of the recorded command's tree.
    pub const OF_COMMAND: Flags = Flags(1);
}

/// `struct mostrace_fork`: a process that was started at `head.time_ns`, and by whom.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawFork {
    /// Common head; its flags are [`fork_flags`].
    pub head: RawHead,
    /// The new process.
    pub tgid: U32<LE>,
    /// The process that called fork, clone or vfork.
    pub parent: U32<LE>,
}

// Little-endian fields have no alignment, so entries are read where they lie. The C header asserts the
// same sizes.
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

/// A file entry with its name, where it lies in a buffer.
#[derive(Clone, Copy, Debug)]
pub struct FileRef<'a> {
    /// The fixed part.
    pub raw: &'a RawFile,
    /// Last path component, raw bytes; empty if no dentry was left or the file was not asked for.
    pub name: &'a [u8],
}

/// One row of a table, where it lies in a buffer.
#[derive(Clone, Copy, Debug)]
pub enum EntryRef<'a> {
    /// Who submitted a bio.
    Process(&'a RawProcess),
    /// Which file a run of a bio belongs to.
    File(FileRef<'a>),
    /// Who dirtied a run of a bio's pages.
    Dirtier(&'a RawDirtier),
    /// A handle of a journal.
    Handle(&'a RawHandle),
    /// A block that a handle dirtied.
    Dirtied(&'a RawDirtied),
    /// A system call.
    Call(&'a RawCall),
    /// Blocks of metadata that a file gave back.
    Freed(&'a RawFreed),
    /// A step of f2fs's.
    F2fs(&'a RawF2fs),
    /// A process that was started.
    Fork(&'a RawFork),
}

impl<'a> EntryRef<'a> {
    /// The common head.
    pub fn head(&self) -> &'a RawHead {
        match self {
            EntryRef::Process(p) => &p.head,
            EntryRef::File(f) => &f.raw.head,
            EntryRef::Dirtier(d) => &d.head,
            EntryRef::Handle(h) => &h.head,
            EntryRef::Dirtied(d) => &d.head,
            EntryRef::Call(c) => &c.head,
            EntryRef::Freed(f) => &f.head,
            EntryRef::F2fs(f) => &f.head,
            EntryRef::Fork(f) => &f.head,
        }
    }

    /// Decodes one whole record, as the kernel handed it over.
    ///
    /// # Errors
    /// What is wrong with the bytes, without the file's name.
    pub fn decode(record: &'a [u8]) -> Result<EntryRef<'a>, String> {
        let (head, _) = RawHead::ref_from_prefix(record).map_err(|_| "shorter than a head")?;
        if usize::from(head.size.get()) != record.len() {
            return Err(format!(
                "size {} of a {}-byte record",
                head.size,
                record.len()
            ));
        }
        match head.kind.get() {
            TYPE_PROCESS => fixed(record, "process").map(EntryRef::Process),
            TYPE_FILE => {
                let (raw, rest) =
                    RawFile::ref_from_prefix(record).map_err(|_| "shorter than a file entry")?;
                let name = rest
                    .get(..usize::from(raw.name_len.get()))
                    .ok_or("name longer than the record")?;
                Ok(EntryRef::File(FileRef { raw, name }))
            }
            TYPE_DIRTIER => fixed(record, "dirtier").map(EntryRef::Dirtier),
            TYPE_HANDLE => fixed(record, "handle").map(EntryRef::Handle),
            TYPE_DIRTIED => fixed(record, "dirtied").map(EntryRef::Dirtied),
            TYPE_CALL => fixed(record, "call").map(EntryRef::Call),
            TYPE_FREED => fixed(record, "freed").map(EntryRef::Freed),
            TYPE_F2FS => fixed(record, "f2fs").map(EntryRef::F2fs),
            TYPE_FORK => fixed(record, "fork").map(EntryRef::Fork),
            other => Err(format!("unknown entry type {other}")),
        }
    }
}

/// An entry of one size, where it lies.
fn fixed<'a, T: FromBytes + Immutable + KnownLayout>(
    record: &'a [u8],
    what: &str,
) -> Result<&'a T, String> {
    let raw = T::ref_from_prefix(record);
    let (raw, _) = raw.map_err(|_| format!("shorter than a {what} entry"))?;
    Ok(raw)
}

/// A file entry with its name.
#[derive(Clone, Debug)]
pub struct FileEntry {
    /// The fixed part.
    pub raw: RawFile,
    /// As [`FileRef::name`].
    pub name: Vec<u8>,
}

/// One row of a table, kept beyond its buffer.
#[derive(Clone, Debug)]
pub enum Entry {
    /// Who submitted a bio.
    Process(RawProcess),
    /// Which file a run of a bio belongs to.
    File(FileEntry),
    /// Who dirtied a run of a bio's pages.
    Dirtier(RawDirtier),
    /// A handle of a journal.
    Handle(RawHandle),
    /// A block that a handle dirtied.
    Dirtied(RawDirtied),
    /// A system call.
    Call(RawCall),
    /// Blocks of metadata that a file gave back.
    Freed(RawFreed),
    /// A step of f2fs's.
    F2fs(RawF2fs),
    /// A process that was started.
    Fork(RawFork),
}

impl Entry {
    /// The common head.
    pub fn head(&self) -> &RawHead {
        match self {
            Entry::Process(p) => &p.head,
            Entry::File(f) => &f.raw.head,
            Entry::Dirtier(d) => &d.head,
            Entry::Handle(h) => &h.head,
            Entry::Dirtied(d) => &d.head,
            Entry::Call(c) => &c.head,
            Entry::Freed(f) => &f.head,
            Entry::F2fs(f) => &f.head,
            Entry::Fork(f) => &f.head,
        }
    }

    /// As [`EntryRef::decode`].
    ///
    /// # Errors
    /// What is wrong with the bytes, without the file's name.
    pub fn decode(record: &[u8]) -> Result<Entry, String> {
        EntryRef::decode(record).map(Entry::from)
    }
}

impl From<EntryRef<'_>> for Entry {
    fn from(entry: EntryRef<'_>) -> Entry {
        match entry {
            EntryRef::Process(raw) => Entry::Process(*raw),
            EntryRef::File(FileRef { raw, name }) => Entry::File(FileEntry {
                raw: *raw,
                name: name.to_vec(),
            }),
            EntryRef::Dirtier(raw) => Entry::Dirtier(*raw),
            EntryRef::Handle(raw) => Entry::Handle(*raw),
            EntryRef::Dirtied(raw) => Entry::Dirtied(*raw),
            EntryRef::Call(raw) => Entry::Call(*raw),
            EntryRef::Freed(raw) => Entry::Freed(*raw),
            EntryRef::F2fs(raw) => Entry::F2fs(*raw),
            EntryRef::Fork(raw) => Entry::Fork(*raw),
        }
    }
}
