// SPDX-License-Identifier: MIT OR Apache-2.0
//! The record of an operation: a call that changed a filesystem's files or names, or ordered its writes. Replayed in
//! order, the operations make the same changes again. They never hold what was written.

use strum::{FromRepr, IntoStaticStr};
use zerocopy::{FromBytes, I64, Immutable, IntoBytes, KnownLayout, LE, U16, U32, U64};

use super::RawHead;

/// `MOSTRACE_OPERATION`.
pub const TYPE_OPERATION: u16 = 11;

/// `struct mostrace_operation` without its names: an operation, which ended at `head.time_ns`.
///
/// Two names follow it, `path_len` and `other_len` bytes long, then NULs up to a multiple of 8. A path counts from the
/// root of the filesystem and does not begin with a slash; the root itself is the empty path.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawOperation {
    /// Common head; its flags are [`operation_flags`]. The sector is [`NONE`](crate::entry::NONE), and bytes is 0.
    pub head: RawHead,
    /// CLOCK_MONOTONIC when the operation began, ns.
    pub start_ns: U64<LE>,
    /// The open file (`struct file`) that the call's descriptor leads to, as a number that is unique in the recording; 0
    /// if the call has none. Descriptors that were duplicated or inherited have the same number.
    pub file: U64<LE>,
    /// For a copy or a clone: the open file from which it took the bytes; otherwise 0.
    pub other_file: U64<LE>,
    /// Offset in the file at which a read, write or range begins, bytes; [`NONE`](crate::entry::NONE) if it is unknown.
    pub offset: U64<LE>,
    /// For a copy or a clone: the offset in [`RawOperation::other_file`].
    pub other_offset: U64<LE>,
    /// Number of bytes that the call asked for, the length of its range, or the length to which it truncated.
    pub bytes: U64<LE>,
    /// The call's return value: bytes, 0, or a negative errno. An open that succeeded has 0.
    pub result: I64<LE>,
    /// Inode number of the file; 0 if it is unknown.
    pub ino: U64<LE>,
    /// For open and opened: the file's size when the call returned, bytes; otherwise [`NONE`](crate::entry::NONE).
    pub size: U64<LE>,
    /// `i_generation` of `ino`.
    pub generation: U32<LE>,
    /// The filesystem, major << 20 | minor.
    pub s_dev: U32<LE>,
    /// Thread.
    pub pid: U32<LE>,
    /// Process.
    pub tgid: U32<LE>,
    /// The call's flags, as in the kernel's generic headers, whatever the machine: `O_…` of an open, `RENAME_…`,
    /// `FALLOC_FL_…`, `SYNC_FILE_RANGE_…`, `MS_…` of msync, `XATTR_…`, `POSIX_FADV_…`.
    pub flags: U32<LE>,
    /// The mode of an open that creates, of mkdir, mknod or chmod.
    pub mode: U32<LE>,
    /// For chown: the user, [`UNKNOWN_ID`](crate::entry::UNKNOWN_ID) if it stays.
    pub uid: U32<LE>,
    /// For chown: the group, likewise.
    pub gid: U32<LE>,
    /// The kind, as an [`OperationKind`].
    pub kind: U16<LE>,
    /// For open and opened: the file's `i_mode`; otherwise 0.
    pub i_mode: U16<LE>,
    /// Length of the path, bytes.
    pub path_len: U16<LE>,
    /// Length of the second name, bytes.
    pub other_len: U16<LE>,
}

const _: () = assert!(size_of::<RawOperation>() == 144);

/// `enum mostrace_operation_flags`: the flags in an operation's head.
pub mod operation_flags {
    use crate::entry::Flags;

    /// The open made the file.
    pub const CREATED: Flags = Flags(1);
    /// The path is unknown: a name was too long to be recorded, or led through something that was not seen.
    pub const NO_PATH: Flags = Flags(2);
    /// The call named its file by path and not by descriptor (truncate, chmod, chown, utimes, xattrs).
    pub const BY_PATH: Flags = Flags(4);
    /// The offset was an argument of the call, or was found by the filesystem; without it the call went on at the file's
    /// position.
    pub const POSITIONED: Flags = Flags(8);
}

/// `enum mostrace_operation_kind`: what an operation does.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, FromRepr, IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
#[repr(u16)]
pub enum OperationKind {
    /// A kind that only a newer recorder knows.
    #[default]
    Unknown = 0,
    /// open, openat, openat2, creat. If it succeeded, the path is that of the file that was opened.
    Open = 1,
    /// No call: the file was open when it was first used in the recording. The path, flags, size and mode are those of
    /// that moment, and the offset is the file's position.
    Opened = 2,
    /// The last descriptor of an open file was closed.
    Close = 3,
    /// read, pread64, readv, preadv, preadv2
    Read = 4,
    /// write, pwrite64, writev, pwritev, pwritev2
    Write = 5,
    /// truncate, ftruncate: `bytes` is the new length
    Truncate = 6,
    /// fallocate
    Fallocate = 7,
    /// fsync
    Fsync = 8,
    /// fdatasync
    Fdatasync = 9,
    /// sync_file_range
    SyncRange = 10,
    /// sync
    Sync = 11,
    /// syncfs
    Syncfs = 12,
    /// msync: the range is that of the file
    Msync = 13,
    /// A task stored to a shared mapping: the range of the file became dirty.
    Store = 14,
    /// rename, renameat, renameat2: the second name is the new path
    Rename = 15,
    /// link, linkat: the second name is the new path; an open file that gets a name has a number instead of the first one
    Link = 16,
    /// symlink, symlinkat: the second name is the target, as it was given
    Symlink = 17,
    /// unlink, unlinkat
    Unlink = 18,
    /// rmdir, unlinkat with AT_REMOVEDIR
    Rmdir = 19,
    /// mkdir, mkdirat
    Mkdir = 20,
    /// mknod, mknodat
    Mknod = 21,
    /// chmod, fchmod, fchmodat
    Chmod = 22,
    /// chown, fchown, lchown, fchownat
    Chown = 23,
    /// utime, utimes, futimesat, utimensat
    Utimes = 24,
    /// setxattr and the like: the second name is the attribute's, `bytes` the length of its value
    Setxattr = 25,
    /// removexattr and the like: the second name is the attribute's
    Removexattr = 26,
    /// copy_file_range, sendfile, splice to a file of the filesystem; `other_file` is 0 if the bytes came from elsewhere
    Copy = 27,
    /// The ioctls FICLONE and FICLONERANGE
    Clone = 28,
    /// f2fs's ioctl that begins an atomic write
    AtomicStart = 29,
    /// f2fs's ioctl that commits an atomic write
    AtomicCommit = 30,
    /// f2fs's ioctl that discards an atomic write
    AtomicAbort = 31,
    /// posix_fadvise: the flags are the advice, and a length of 0 reaches to the end of the file
    Fadvise = 32,
}

impl OperationKind {
    /// Returns the kind with this number, [`OperationKind::Unknown`] for unknown numbers.
    pub fn of(number: u16) -> OperationKind {
        OperationKind::from_repr(number).unwrap_or_default()
    }
}

/// The longest path that the kernel takes, bytes (`PATH_MAX` of `<linux/limits.h>`, less the final NUL).
const PATH_MAX: usize = 4095;
/// The longest component, bytes (`NAME_MAX`).
const NAME_MAX: usize = 255;

/// Returns a path as an operation has it: slashes in front and double ones, and `.`, are dropped, and `..` drops the component
/// before it. Returns None if the path leads above the root, holds a NUL, or is longer than the kernel takes.
pub fn normal_path(path: &[u8]) -> Option<Vec<u8>> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()?),
            part if part.len() > NAME_MAX || part.contains(&0) => return None,
            part => parts.push(part),
        }
    }
    Some(parts.join(&b'/')).filter(|path| path.len() <= PATH_MAX)
}

/// An operation and its names, borrowed from a buffer.
#[derive(Clone, Copy, Debug)]
pub struct OperationRef<'a> {
    /// The fixed part.
    pub raw: &'a RawOperation,
    /// The path as raw bytes.
    pub path: &'a [u8],
    /// The second name as raw bytes.
    pub other: &'a [u8],
}

impl<'a> OperationRef<'a> {
    /// Decodes a whole record.
    pub(crate) fn decode(record: &'a [u8]) -> Result<OperationRef<'a>, String> {
        let (raw, rest) =
            RawOperation::ref_from_prefix(record).map_err(|_| "shorter than an operation entry")?;
        let names = rest
            .split_at_checked(raw.path_len.get().into())
            .and_then(|(path, rest)| Some((path, rest.get(..raw.other_len.get().into())?)));
        let (path, other) = names.ok_or("names longer than the record")?;
        Ok(OperationRef { raw, path, other })
    }

    /// Returns the whole record, with the sizes and the type set.
    ///
    /// # Errors
    /// Returns an error if the names are too long for a record.
    pub fn encode(&self) -> Result<Vec<u8>, String> {
        let len = |name: &[u8]| u16::try_from(name.len()).map_err(|_| "a name is too long");
        let mut raw = *self.raw;
        (raw.path_len, raw.other_len) = (len(self.path)?.into(), len(self.other)?.into());
        let names = self.path.len().saturating_add(self.other.len());
        let size = size_of::<RawOperation>().saturating_add(names.next_multiple_of(8));
        raw.head.kind = TYPE_OPERATION.into();
        raw.head.size = u16::try_from(size)
            .map_err(|_| "its names are too long")?
            .into();
        let mut record = Vec::with_capacity(size);
        record.extend_from_slice(raw.as_bytes());
        record.extend_from_slice(self.path);
        record.extend_from_slice(self.other);
        record.resize(size, 0);
        Ok(record)
    }
}

/// An operation that owns its names.
#[derive(Clone, Debug)]
pub struct OperationEntry {
    /// The fixed part.
    pub raw: RawOperation,
    /// The path, see [`OperationRef::path`].
    pub path: Vec<u8>,
    /// The second name, see [`OperationRef::other`].
    pub other: Vec<u8>,
}

impl From<OperationRef<'_>> for OperationEntry {
    fn from(from: OperationRef<'_>) -> OperationEntry {
        OperationEntry {
            raw: *from.raw,
            path: from.path.to_vec(),
            other: from.other.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_as_long_as_the_kernel_takes() {
        let name = |len: usize| vec![b'n'; len];
        assert_eq!(normal_path(&name(NAME_MAX)), Some(name(NAME_MAX)));
        assert_eq!(normal_path(&name(NAME_MAX + 1)), None);
        // 16 names of 255 bytes and the slashes between them.
        let longest = vec![name(NAME_MAX); 16].join(&b'/');
        assert_eq!(longest.len(), PATH_MAX);
        assert_eq!(normal_path(&longest).as_deref(), Some(&longest[..]));
        assert_eq!(normal_path(&[&longest[..], b"n"].concat()), None);
    }
}
