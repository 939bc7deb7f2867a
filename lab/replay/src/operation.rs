// SPDX-License-Identifier: MIT OR Apache-2.0
//! The operations of an application on a filesystem.

use strum::IntoStaticStr;

use crate::Name;

/// An open file (the kernel's `struct file`), which is shared by all descriptors that were duplicated or inherited from one open.
/// The number is unique in the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u64);

/// An operation, from the call to its return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The thread that made the call.
    pub thread: u32,
    /// The process of that thread.
    pub process: u32,
    /// The time of the call, in ns of the recording's clock.
    pub begin_ns: u64,
    /// The time of its return, in ns of the same clock; not before `begin_ns`.
    pub end_ns: u64,
    /// The call and its arguments.
    pub call: Call,
    /// The result: bytes, 0, or a negative errno. An open that succeeded has 0.
    pub result: i64,
}

/// What a recording does not tell of its operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// When they began, so that only their order is known.
    pub times: bool,
    /// How long they took, so that each one seems to end when it began.
    pub durations: bool,
}

/// The file that a call names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The call names it by a descriptor.
    File(FileId),
    /// The call names it by a path.
    Path(Name),
}

/// The known properties of an open file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// The number that later operations give it. None if the open failed.
    pub file: Option<FileId>,
    /// The path; None if it is unknown.
    pub path: Option<Name>,
    /// `O_…`, as in asm-generic/fcntl.h.
    pub flags: u32,
    /// The permissions that a created file was asked to have.
    pub mode: u32,
    /// The file's `i_mode` (`S_IF…` and permissions) when the call returned; 0 if it is unknown.
    pub i_mode: u32,
    /// The file's size when the call returned, bytes; None if it is unknown.
    pub size: Option<u64>,
    /// True if the open made the file.
    pub created: bool,
    /// The inode's number and generation; (0, 0) if they are unknown.
    pub inode: (u64, u32),
}

/// A range of a file, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Its start.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
}

/// A call and its arguments.
#[derive(Clone, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs)] // the fields are the calls' arguments
pub enum Call {
    Open(Opened),
    /// This is not a call: the file was open when it was first used.
    Opened(Opened),
    /// A call on an open file; of two files, on the one that changes.
    Of(FileId, FileCall),
    /// A call that changes what its target's inode says.
    Change(Target, Change),
    Sync,
    Rename {
        from: Name,
        to: Name,
        flags: u32,
    },
    /// `follow` tells whether a symbolic link in the last component of `from` is followed.
    Link {
        from: Target,
        to: Name,
        follow: bool,
    },
    /// `target` is the link's text; it may lead anywhere.
    Symlink {
        target: Vec<u8>,
        path: Name,
    },
    Unlink(Name),
    Rmdir(Name),
    Mkdir {
        path: Name,
        mode: u32,
    },
    Mknod {
        path: Name,
        mode: u32,
    },
}

/// A call takes an open file and does this with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs)] // the fields are the calls' arguments
pub enum FileCall {
    /// The last descriptor was closed.
    Close,
    /// `offset` is None if the call used the file's position and that is unknown.
    Read {
        offset: Option<u64>,
        bytes: u64,
    },
    /// `offset` is None if it is unknown, or if the file was opened with `O_APPEND`.
    Write {
        offset: Option<u64>,
        bytes: u64,
    },
    /// The range, and the mode.
    Fallocate(Range, u32),
    Fsync,
    Fdatasync,
    /// The range, and the flags.
    SyncRange(Range, u32),
    /// The range, whose length of 0 reaches to the end of the file, and the advice.
    Fadvise(Range, u32),
    Syncfs,
    /// The range, which is counted in the file that was mapped, and the flags.
    Msync(Range, u32),
    /// The task stored to a shared mapping, so that the range became dirty.
    Store(Range),
    /// copy_file_range, sendfile, splice. `from` is None if the bytes came from outside the filesystem.
    Copy {
        from: Option<FileId>,
        from_offset: Option<u64>,
        offset: Option<u64>,
        bytes: u64,
    },
    /// A length of 0 means up to the end of `from`.
    Clone {
        from: FileId,
        from_offset: u64,
        range: Range,
    },
    AtomicStart,
    AtomicCommit,
    AtomicAbort,
}

/// A change of an inode.
#[derive(Clone, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs)] // the fields are the calls' arguments
pub enum Change {
    /// To this length in bytes.
    Truncate(u64),
    Chmod(u32),
    /// `u32::MAX` leaves the user or the group as it is.
    Chown {
        uid: u32,
        gid: u32,
    },
    Utimes,
    Setxattr {
        name: Vec<u8>,
        bytes: u64,
        flags: u32,
    },
    Removexattr(Vec<u8>),
}

impl Call {
    /// Returns the word that tables use, for example `sync_range`: that of
    /// [`OperationKind`](mostrace_bundle::operation::OperationKind).
    pub fn kind(&self) -> &'static str {
        match self {
            Call::Of(_, call) => call.into(),
            Call::Change(_, change) => change.into(),
            call => call.into(),
        }
    }
}
