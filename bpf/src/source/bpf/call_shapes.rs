// SPDX-License-Identifier: MIT OR Apache-2.0
//! The system calls that change filesystems: what they do, and the places of their arguments, for the probes of operations.

use mostrace_bundle::operation::OperationKind as Kind;

/// `CALLS_MAX` of syscall.bpf.h.
const CALLS_MAX: usize = 512;

/// The places of a call's arguments, encoded as in operation.bpf.h; they count from 1.
#[derive(Clone, Copy)]
struct Shape(u32);

const NOTHING: Shape = Shape(0);

impl Shape {
    const fn with(self, bits: u32) -> Shape {
        Shape(self.0 | bits)
    }
    /// Adds `SHAPE_FD`.
    const fn fd(self, at: u32) -> Shape {
        self.with(at)
    }
    /// Adds `SHAPE_FD2`.
    const fn fd2(self, at: u32) -> Shape {
        self.with(at << 3)
    }
    /// Adds `SHAPE_PATH`.
    const fn path(self, at: u32) -> Shape {
        self.with(at << 6)
    }
    /// Adds `SHAPE_PATH2`.
    const fn path2(self, at: u32) -> Shape {
        self.with(at << 9)
    }
    /// Adds `SHAPE_OFFSET` and `SHAPE_OFFSET2`.
    const fn offsets(self, first: u32, second: u32) -> Shape {
        self.with(first << 12 | second << 15)
    }
    /// Adds `SHAPE_AT`.
    const fn at(self) -> Shape {
        self.with(1 << 18)
    }
    /// Adds `SHAPE_OPENS`.
    const fn opens(self) -> Shape {
        self.with(1 << 19)
    }
    /// Adds `SHAPE_CLOSES`.
    const fn closes(self) -> Shape {
        self.with(1 << 20)
    }
    /// Adds `SHAPE_TEXT`.
    const fn text(self, at: u32) -> Shape {
        self.path2(at).with(1 << 21)
    }
    /// Adds `SHAPE_CLONES`.
    const fn clones(self) -> Shape {
        self.with(1 << 22)
    }
    /// Adds `SHAPE_HOW`.
    const fn how(self) -> Shape {
        self.with(1 << 23)
    }
    /// Adds `SHAPE_MAPPED`.
    const fn mapped(self) -> Shape {
        self.with(1 << 25)
    }
    /// Adds `SHAPE_SUBMITS`.
    const fn submits(self) -> Shape {
        self.with(1 << 26)
    }
    /// Adds `SHAPE_CLOSES_ALL`.
    const fn closes_all(self) -> Shape {
        self.with(1 << 27)
    }
    /// Adds `SHAPE_EXECUTES`.
    const fn executes(self) -> Shape {
        self.with(1 << 28)
    }
    /// Adds `SHAPE_READS`.
    const fn reads(self) -> Shape {
        self.with(1 << 29)
    }
    /// Adds `SHAPE_ALL`.
    const fn all(self) -> Shape {
        self.with(1 << 24)
    }
}

/// What a call does, and the places of its further arguments, which count from 0.
#[cfg_attr(target_arch = "aarch64", allow(dead_code))] // arm64 lacks the calls of OLD
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// The call opens; the places of its flags and its mode.
    Open(usize, usize),
    Creat,
    Close,
    /// The call writes; the place of its length (None if it has several buffers), and true if an argument gives the offset.
    Write(Option<usize>, bool),
    /// The call reads; the fields are those of [`Does::Write`].
    Read(Option<usize>, bool),
    Truncate,
    Fallocate,
    /// The call syncs; it has no further arguments.
    Sync(Kind),
    SyncRange,
    Fadvise,
    Msync,
    /// This is not a call: a task stored to a shared mapping.
    Store,
    /// The call renames; the place of its flags, if it has any.
    Rename(Option<usize>),
    /// The call links; the place of its flags, if it has any.
    Link(Option<usize>),
    Symlink,
    /// The call removes a file or a folder; the place of its flags.
    Unlinkat(usize),
    Unlink,
    Rmdir,
    /// The call has a mode at this place.
    Mode(Kind, usize),
    /// The call sets owners; the place of the user, behind which is the group's.
    Owner(usize),
    Utimes,
    Setxattr,
    Removexattr,
    /// The call copies; the place of its length, and true if an argument gives the offset at which it writes.
    Copy(usize, bool),
    Ioctl,
}

/// Calls that are not operations themselves, but do what operations do.
const OTHERS: &[(i64, Shape)] = &[
    (libc::SYS_io_uring_enter, NOTHING.submits()),
    (libc::SYS_io_submit, NOTHING.submits()),
    (libc::SYS_close_range, NOTHING.closes_all()),
    (libc::SYS_execve, NOTHING.executes()),
    (libc::SYS_execveat, NOTHING.executes()),
];

/// Calls that read.
const READS: &[(i64, Shape, Does)] = &[
    (libc::SYS_read, FD.reads(), Does::Read(Some(2), false)),
    (libc::SYS_readv, FD.reads(), Does::Read(None, false)),
    (libc::SYS_pread64, FD.reads(), Does::Read(Some(2), true)),
    (libc::SYS_preadv, FD.reads(), Does::Read(None, true)),
    (libc::SYS_preadv2, FD.reads(), Does::Read(None, true)),
];

/// `IORING_OP_…` of linux/io_uring.h, and the system calls to which they correspond.
const REQUESTS: &[(usize, i64)] = &[
    (1, libc::SYS_pread64),
    (2, libc::SYS_pwrite64),
    // With IORING_FSYNC_DATASYNC, this is fdatasync.
    (3, libc::SYS_fsync),
    (4, libc::SYS_pread64),
    (5, libc::SYS_pwrite64),
    (8, libc::SYS_sync_file_range),
    (17, libc::SYS_fallocate),
    (18, libc::SYS_openat),
    (19, libc::SYS_close),
    (22, libc::SYS_pread64),
    (23, libc::SYS_pwrite64),
    (24, libc::SYS_fadvise64),
    (28, libc::SYS_openat),
    (30, libc::SYS_splice),
    (35, libc::SYS_renameat2),
    (36, libc::SYS_unlinkat),
    (37, libc::SYS_mkdirat),
    (38, libc::SYS_symlinkat),
    (39, libc::SYS_linkat),
    (41, libc::SYS_fsetxattr),
    (42, libc::SYS_setxattr),
    (55, libc::SYS_ftruncate),
    (60, libc::SYS_pread64),
    (61, libc::SYS_pwrite64),
];
/// `RING_OPCODES` of ringcall.bpf.h.
const OPCODES: usize = 64;

const FD: Shape = NOTHING.fd(1);
const PATH: Shape = NOTHING.path(1);
const AT: Shape = NOTHING.path(2).at();
const AT_BOTH: Shape = NOTHING.path(2).path2(4).at();

/// Calls that all architectures have.
const CALLS: &[(i64, Shape, Does)] = &[
    (libc::SYS_openat, AT.opens(), Does::Open(2, 3)),
    (libc::SYS_openat2, AT.opens().how(), Does::Open(4, 5)),
    (libc::SYS_close, FD.closes(), Does::Close),
    // The second descriptor is closed if it leads to a file.
    (libc::SYS_dup3, NOTHING.fd(2).closes(), Does::Close),
    (libc::SYS_write, FD, Does::Write(Some(2), false)),
    (libc::SYS_writev, FD, Does::Write(None, false)),
    (libc::SYS_pwrite64, FD, Does::Write(Some(2), true)),
    (libc::SYS_pwritev, FD, Does::Write(None, true)),
    (libc::SYS_pwritev2, FD, Does::Write(None, true)),
    (libc::SYS_truncate, PATH, Does::Truncate),
    (libc::SYS_ftruncate, FD, Does::Truncate),
    (libc::SYS_fallocate, FD, Does::Fallocate),
    (libc::SYS_fsync, FD, Does::Sync(Kind::Fsync)),
    (libc::SYS_fdatasync, FD, Does::Sync(Kind::Fdatasync)),
    (libc::SYS_sync_file_range, FD, Does::SyncRange),
    (libc::SYS_fadvise64, FD, Does::Fadvise),
    (libc::SYS_msync, NOTHING.mapped(), Does::Msync),
    (libc::SYS_syncfs, FD, Does::Sync(Kind::Syncfs)),
    (libc::SYS_sync, NOTHING.all(), Does::Sync(Kind::Sync)),
    (libc::SYS_renameat, AT_BOTH, Does::Rename(None)),
    (libc::SYS_renameat2, AT_BOTH, Does::Rename(Some(4))),
    (libc::SYS_linkat, AT_BOTH, Does::Link(Some(4))),
    (
        libc::SYS_symlinkat,
        NOTHING.path(3).at().text(1),
        Does::Symlink,
    ),
    (libc::SYS_unlinkat, AT, Does::Unlinkat(2)),
    (libc::SYS_mkdirat, AT, Does::Mode(Kind::Mkdir, 2)),
    (libc::SYS_mknodat, AT, Does::Mode(Kind::Mknod, 2)),
    (libc::SYS_fchmod, FD, Does::Mode(Kind::Chmod, 1)),
    (libc::SYS_fchmodat, AT, Does::Mode(Kind::Chmod, 2)),
    (libc::SYS_fchown, FD, Does::Owner(1)),
    (libc::SYS_fchownat, AT, Does::Owner(2)),
    (libc::SYS_utimensat, AT, Does::Utimes),
    (libc::SYS_setxattr, PATH.text(2), Does::Setxattr),
    (libc::SYS_lsetxattr, PATH.text(2), Does::Setxattr),
    (libc::SYS_fsetxattr, FD.text(2), Does::Setxattr),
    (libc::SYS_removexattr, PATH.text(2), Does::Removexattr),
    (libc::SYS_lremovexattr, PATH.text(2), Does::Removexattr),
    (libc::SYS_fremovexattr, FD.text(2), Does::Removexattr),
    (
        libc::SYS_sendfile,
        FD.fd2(2).offsets(0, 3),
        Does::Copy(3, false),
    ),
    (
        libc::SYS_splice,
        NOTHING.fd(3).fd2(1).offsets(4, 2),
        Does::Copy(4, true),
    ),
    (
        libc::SYS_copy_file_range,
        NOTHING.fd(3).fd2(1).offsets(4, 2),
        Does::Copy(4, true),
    ),
    (libc::SYS_ioctl, FD.clones(), Does::Ioctl),
];

/// Calls that newer architectures such as arm64 lack.
#[cfg(any(target_arch = "x86_64", target_arch = "x86", target_arch = "arm"))]
const OLD: &[(i64, Shape, Does)] = &[
    (libc::SYS_open, PATH.opens(), Does::Open(1, 2)),
    (libc::SYS_creat, PATH.opens(), Does::Creat),
    (libc::SYS_dup2, NOTHING.fd(2).closes(), Does::Close),
    (libc::SYS_rename, PATH.path2(2), Does::Rename(None)),
    (libc::SYS_link, PATH.path2(2), Does::Link(None)),
    (libc::SYS_symlink, NOTHING.path(2).text(1), Does::Symlink),
    (libc::SYS_unlink, PATH, Does::Unlink),
    (libc::SYS_rmdir, PATH, Does::Rmdir),
    (libc::SYS_mkdir, PATH, Does::Mode(Kind::Mkdir, 1)),
    (libc::SYS_mknod, PATH, Does::Mode(Kind::Mknod, 1)),
    (libc::SYS_chmod, PATH, Does::Mode(Kind::Chmod, 1)),
    (libc::SYS_chown, PATH, Does::Owner(1)),
    (libc::SYS_lchown, PATH, Does::Owner(1)),
    (libc::SYS_utime, PATH, Does::Utimes),
    (libc::SYS_utimes, PATH, Does::Utimes),
    (libc::SYS_futimesat, AT, Does::Utimes),
];
#[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "arm")))]
const OLD: &[(i64, Shape, Does)] = &[];

/// `STORE_NUMBER` of store.bpf.h; no call has this number.
const STORE: u32 = 512;

/// Returns what the call with this number does; None if it is not recorded.
pub(super) fn does(number: u32) -> Option<Does> {
    if number == STORE {
        return Some(Does::Store);
    }
    let mut calls = CALLS.iter().chain(OLD).chain(READS);
    let found = calls.find(|(known, ..)| *known == i64::from(number));
    found.map(|(.., does)| *does)
}

/// Returns the shape of each system call, by number; 0 for calls that are not recorded. Calls that read are included if `reads` is
/// true.
pub(super) fn shapes(reads: bool) -> [u32; CALLS_MAX] {
    let mut shapes = [0; CALLS_MAX];
    let reading = READS.iter().filter(|_| reads);
    let calls = CALLS.iter().chain(OLD).chain(reading);
    let calls = calls.map(|(number, shape, _)| (*number, *shape));
    for (number, Shape(bits)) in calls.chain(OTHERS.iter().copied()) {
        let place = usize::try_from(number).ok();
        if let Some(place) = place.and_then(|n| shapes.get_mut(n)) {
            *place = bits;
        }
    }
    shapes
}

/// Returns the number of the system call to which a request to io_uring corresponds, by the request's opcode; 0 for requests that
/// are not recorded.
pub(super) fn requests() -> [u16; OPCODES] {
    let mut calls = [0; OPCODES];
    for &(opcode, call) in REQUESTS {
        if let (Some(place), Ok(call)) = (calls.get_mut(opcode), u16::try_from(call)) {
            *place = call;
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_is_there_twice() {
        let mut numbers: Vec<i64> = CALLS
            .iter()
            .chain(OLD)
            .chain(READS)
            .map(|(number, ..)| *number)
            .chain(OTHERS.iter().map(|(number, _)| *number))
            .collect();
        let all = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), all);
        let known = |reads| shapes(reads).iter().filter(|shape| **shape != 0).count();
        assert_eq!(known(true), all);
        assert_eq!(known(false), all - READS.len());
        for (opcode, call) in requests()
            .iter()
            .enumerate()
            .filter(|(_, call)| **call != 0)
        {
            assert!(does((*call).into()).is_some(), "{opcode}");
        }
    }
}
