// SPDX-License-Identifier: MIT OR Apache-2.0
//! The system calls of this machine by number, and what the probes make of each.

use mostrace_bundle::entry::CallKind;

/// `CALLS_MAX` of call.bpf.h.
const CALLS_MAX: usize = 512;

/// `CALL_INSIDE`: the call is named in handles, and not recorded itself.
const INSIDE: u16 = 0x20;
/// `CALL_PATH`: its first argument is no descriptor.
const PATH: u16 = 0x40;
/// `CALL_AT`: its fourth argument is an offset.
const AT: u16 = 0x80;
/// `CALL_VECTOR`: its second argument is an array of buffers.
const VECTOR: u16 = 0x100;
/// `CALL_IOCTL`: its second argument says what it is.
const IOCTL: u16 = 0x200;
/// `CALL_THIRD`: its third argument is the descriptor of the file that is written.
const THIRD: u16 = 0x400;
/// `CALL_MMAP`: its arguments are those of mmap.
const MMAP: u16 = 0x800;

/// The system calls that all architectures have, with their kind and the place of their arguments.
const CALLS: &[(i64, CallKind, u16)] = &[
    (libc::SYS_write, CallKind::Write, 0),
    (libc::SYS_writev, CallKind::Write, VECTOR),
    (libc::SYS_pwrite64, CallKind::Write, AT),
    (libc::SYS_pwritev, CallKind::Write, AT | VECTOR),
    (libc::SYS_pwritev2, CallKind::Write, AT | VECTOR),
    (libc::SYS_fsync, CallKind::Fsync, 0),
    (libc::SYS_fdatasync, CallKind::Fdatasync, 0),
    (libc::SYS_sync_file_range, CallKind::SyncRange, 0),
    (libc::SYS_syncfs, CallKind::Sync, 0),
    (libc::SYS_sync, CallKind::Sync, PATH),
    (libc::SYS_msync, CallKind::Msync, PATH),
    (libc::SYS_ftruncate, CallKind::Truncate, 0),
    (libc::SYS_truncate, CallKind::Truncate, PATH),
    (libc::SYS_fallocate, CallKind::Fallocate, 0),
    (libc::SYS_ioctl, CallKind::Other, IOCTL),
    (libc::SYS_unlinkat, CallKind::Unlink, PATH),
    (libc::SYS_renameat2, CallKind::Rename, PATH),
    (libc::SYS_renameat, CallKind::Rename, PATH),
    (libc::SYS_mkdirat, CallKind::Mkdir, PATH),
    (libc::SYS_linkat, CallKind::Link, PATH),
    (libc::SYS_symlinkat, CallKind::Link, PATH),
    (libc::SYS_mknodat, CallKind::Link, PATH),
    (libc::SYS_openat, CallKind::Open, INSIDE),
    (libc::SYS_openat2, CallKind::Open, INSIDE),
    (libc::SYS_close, CallKind::Close, INSIDE),
    (libc::SYS_close_range, CallKind::Close, INSIDE),
    (libc::SYS_setxattr, CallKind::Xattr, INSIDE),
    (libc::SYS_lsetxattr, CallKind::Xattr, INSIDE),
    (libc::SYS_fsetxattr, CallKind::Xattr, INSIDE),
    (libc::SYS_removexattr, CallKind::Xattr, INSIDE),
    (libc::SYS_lremovexattr, CallKind::Xattr, INSIDE),
    (libc::SYS_fremovexattr, CallKind::Xattr, INSIDE),
    (libc::SYS_read, CallKind::Read, INSIDE),
    (libc::SYS_readv, CallKind::Read, INSIDE),
    (libc::SYS_pread64, CallKind::Read, INSIDE),
    (libc::SYS_preadv, CallKind::Read, INSIDE),
    (libc::SYS_preadv2, CallKind::Read, INSIDE),
    (libc::SYS_getdents64, CallKind::Read, INSIDE),
    (libc::SYS_readlinkat, CallKind::Read, INSIDE),
    (libc::SYS_execve, CallKind::Read, INSIDE),
    (libc::SYS_io_uring_enter, CallKind::Uring, INSIDE),
    (libc::SYS_fchmod, CallKind::Attr, INSIDE),
    (libc::SYS_fchmodat, CallKind::Attr, INSIDE),
    (libc::SYS_fchown, CallKind::Attr, INSIDE),
    (libc::SYS_fchownat, CallKind::Attr, INSIDE),
    (libc::SYS_utimensat, CallKind::Attr, INSIDE),
    (libc::SYS_mount, CallKind::Mount, INSIDE),
    (libc::SYS_fsconfig, CallKind::Mount, INSIDE),
    (libc::SYS_umount2, CallKind::Umount, INSIDE),
    (libc::SYS_sendfile, CallKind::Splice, 0),
    (libc::SYS_splice, CallKind::Splice, THIRD),
    (libc::SYS_copy_file_range, CallKind::Splice, THIRD),
];

/// Calls that newer architectures, arm64 among them, do without.
#[cfg(any(target_arch = "x86_64", target_arch = "x86", target_arch = "arm"))]
const OLD: &[(i64, CallKind, u16)] = &[
    (libc::SYS_unlink, CallKind::Unlink, PATH),
    (libc::SYS_rmdir, CallKind::Unlink, PATH),
    (libc::SYS_rename, CallKind::Rename, PATH),
    (libc::SYS_mkdir, CallKind::Mkdir, PATH),
    (libc::SYS_link, CallKind::Link, PATH),
    (libc::SYS_symlink, CallKind::Link, PATH),
    (libc::SYS_mknod, CallKind::Link, PATH),
    (libc::SYS_open, CallKind::Open, INSIDE),
    (libc::SYS_creat, CallKind::Open, INSIDE),
    (libc::SYS_getdents, CallKind::Read, INSIDE),
    (libc::SYS_chmod, CallKind::Attr, INSIDE),
    (libc::SYS_chown, CallKind::Attr, INSIDE),
    (libc::SYS_lchown, CallKind::Attr, INSIDE),
    (libc::SYS_utimes, CallKind::Attr, INSIDE),
];
#[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "arm")))]
const OLD: &[(i64, CallKind, u16)] = &[];

/// Machines with addresses of 32 bits have mmap2, whose offset counts in pages.
#[cfg(target_pointer_width = "64")]
const MAPS: &[(i64, CallKind, u16)] = &[(libc::SYS_mmap, CallKind::Mmap, MMAP)];
#[cfg(not(target_pointer_width = "64"))]
const MAPS: &[(i64, CallKind, u16)] = &[(libc::SYS_mmap2, CallKind::Other, MMAP)];

/// The kind of each system call by number, `enum mostrace_call_kind`, and the place of its arguments.
pub(crate) fn kinds() -> [u16; CALLS_MAX] {
    let mut kinds = [0; CALLS_MAX];
    for &(number, kind, how) in CALLS.iter().chain(MAPS).chain(OLD) {
        let place = usize::try_from(number).ok().and_then(|n| kinds.get_mut(n));
        if let Some(place) = place {
            *place = kind as u16 | how;
        }
    }
    kinds
}

/// Returns the number of a system call in the form in which the probes compare it.
pub(super) fn number(call: i64) -> i32 {
    i32::try_from(call).unwrap_or(-1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_has_its_kind() {
        let kinds = kinds();
        let of = |number: i64| kinds[usize::try_from(number).unwrap()];
        assert_eq!(of(libc::SYS_write), 1);
        assert_eq!(of(libc::SYS_pwrite64), 1 | AT);
        assert_eq!(of(libc::SYS_unlinkat), 7 | PATH);
        assert_eq!(of(libc::SYS_getpid), 0);
        for &(number, kind, how) in CALLS.iter().chain(MAPS).chain(OLD) {
            assert_eq!(of(number), kind as u16 | how, "{number}: named twice?");
        }
    }
}
