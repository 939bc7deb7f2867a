// SPDX-License-Identifier: MIT OR Apache-2.0
//! The system calls of this machine, by number, and how the probes treat each.

use mostrace_bundle::entry::CallKind;

/// `CALLS_MAX` of call.bpf.h.
const CALLS_MAX: usize = 512;

/// `CALL_INSIDE`: the call is named in handles, but is not recorded itself.
const INSIDE: u16 = 0x20;
/// `CALL_PATH`: its first argument is not a descriptor.
const PATH: u16 = 0x40;
/// `CALL_AT`: its fourth argument is an offset.
const AT: u16 = 0x80;
/// `CALL_VECTOR`: its second argument is an array of buffers.
const VECTOR: u16 = 0x100;
/// `CALL_IOCTL`: its second argument selects what it does.
const IOCTL: u16 = 0x200;
/// `CALL_THIRD`: its third argument is the descriptor of the file to which it writes.
const THIRD: u16 = 0x400;
/// `CALL_MMAP`: its arguments are those of mmap.
const MMAP: u16 = 0x800;

/// `CALL_RWF`: its sixth argument has flags `RWF_…`.
const RWF: u16 = 0x4000;
/// `CALL_AIO`: io_submit, whose requests are remembered.
const AIO: u16 = 0x8000;

/// A system call: its number, its name in the kernel, its kind, and the place of its arguments.
type Call = (i64, &'static str, CallKind, u16);

/// The system calls that all architectures have.
const CALLS: &[Call] = &[
    (libc::SYS_write, "write", CallKind::Write, 0),
    (libc::SYS_writev, "writev", CallKind::Write, VECTOR),
    (libc::SYS_pwrite64, "pwrite64", CallKind::Write, AT),
    (libc::SYS_pwritev, "pwritev", CallKind::Write, AT | VECTOR),
    (
        libc::SYS_pwritev2,
        "pwritev2",
        CallKind::Write,
        AT | VECTOR | RWF,
    ),
    (libc::SYS_fsync, "fsync", CallKind::Fsync, 0),
    (libc::SYS_fdatasync, "fdatasync", CallKind::Fdatasync, 0),
    (
        libc::SYS_sync_file_range,
        "sync_file_range",
        CallKind::SyncRange,
        0,
    ),
    (libc::SYS_syncfs, "syncfs", CallKind::Sync, 0),
    (libc::SYS_sync, "sync", CallKind::Sync, PATH),
    (libc::SYS_msync, "msync", CallKind::Msync, PATH),
    (libc::SYS_ftruncate, "ftruncate", CallKind::Truncate, 0),
    (libc::SYS_truncate, "truncate", CallKind::Truncate, PATH),
    (libc::SYS_fallocate, "fallocate", CallKind::Fallocate, 0),
    (
        libc::SYS_io_submit,
        "io_submit",
        CallKind::Other,
        INSIDE | AIO,
    ),
    (libc::SYS_ioctl, "ioctl", CallKind::Other, IOCTL),
    (libc::SYS_unlinkat, "unlinkat", CallKind::Unlink, PATH),
    (libc::SYS_renameat2, "renameat2", CallKind::Rename, PATH),
    (libc::SYS_renameat, "renameat", CallKind::Rename, PATH),
    (libc::SYS_mkdirat, "mkdirat", CallKind::Mkdir, PATH),
    (libc::SYS_linkat, "linkat", CallKind::Link, PATH),
    (libc::SYS_symlinkat, "symlinkat", CallKind::Link, PATH),
    (libc::SYS_mknodat, "mknodat", CallKind::Link, PATH),
    (libc::SYS_openat, "openat", CallKind::Open, INSIDE),
    (libc::SYS_openat2, "openat2", CallKind::Open, INSIDE),
    (libc::SYS_close, "close", CallKind::Close, INSIDE),
    (
        libc::SYS_close_range,
        "close_range",
        CallKind::Close,
        INSIDE,
    ),
    (libc::SYS_setxattr, "setxattr", CallKind::Xattr, INSIDE),
    (libc::SYS_lsetxattr, "lsetxattr", CallKind::Xattr, INSIDE),
    (libc::SYS_fsetxattr, "fsetxattr", CallKind::Xattr, INSIDE),
    (
        libc::SYS_removexattr,
        "removexattr",
        CallKind::Xattr,
        INSIDE,
    ),
    (
        libc::SYS_lremovexattr,
        "lremovexattr",
        CallKind::Xattr,
        INSIDE,
    ),
    (
        libc::SYS_fremovexattr,
        "fremovexattr",
        CallKind::Xattr,
        INSIDE,
    ),
    (libc::SYS_read, "read", CallKind::Read, INSIDE),
    (libc::SYS_readv, "readv", CallKind::Read, INSIDE),
    (libc::SYS_pread64, "pread64", CallKind::Read, INSIDE),
    (libc::SYS_preadv, "preadv", CallKind::Read, INSIDE),
    (libc::SYS_preadv2, "preadv2", CallKind::Read, INSIDE),
    (libc::SYS_getdents64, "getdents64", CallKind::Read, INSIDE),
    (libc::SYS_readlinkat, "readlinkat", CallKind::Read, INSIDE),
    (libc::SYS_execve, "execve", CallKind::Read, INSIDE),
    (
        libc::SYS_io_uring_enter,
        "io_uring_enter",
        CallKind::Uring,
        INSIDE,
    ),
    (libc::SYS_fchmod, "fchmod", CallKind::Attr, INSIDE),
    (libc::SYS_fchmodat, "fchmodat", CallKind::Attr, INSIDE),
    (libc::SYS_fchown, "fchown", CallKind::Attr, INSIDE),
    (libc::SYS_fchownat, "fchownat", CallKind::Attr, INSIDE),
    (libc::SYS_utimensat, "utimensat", CallKind::Attr, INSIDE),
    (libc::SYS_mount, "mount", CallKind::Mount, INSIDE),
    (libc::SYS_fsconfig, "fsconfig", CallKind::Mount, INSIDE),
    (libc::SYS_umount2, "umount2", CallKind::Umount, INSIDE),
    (libc::SYS_sendfile, "sendfile64", CallKind::Splice, 0),
    (libc::SYS_splice, "splice", CallKind::Splice, THIRD),
    (
        libc::SYS_copy_file_range,
        "copy_file_range",
        CallKind::Splice,
        THIRD,
    ),
];

/// Calls that newer architectures such as arm64 lack.
#[cfg(any(target_arch = "x86_64", target_arch = "x86", target_arch = "arm"))]
const OLD: &[Call] = &[
    (libc::SYS_unlink, "unlink", CallKind::Unlink, PATH),
    (libc::SYS_rmdir, "rmdir", CallKind::Unlink, PATH),
    (libc::SYS_rename, "rename", CallKind::Rename, PATH),
    (libc::SYS_mkdir, "mkdir", CallKind::Mkdir, PATH),
    (libc::SYS_link, "link", CallKind::Link, PATH),
    (libc::SYS_symlink, "symlink", CallKind::Link, PATH),
    (libc::SYS_mknod, "mknod", CallKind::Link, PATH),
    (libc::SYS_open, "open", CallKind::Open, INSIDE),
    (libc::SYS_creat, "creat", CallKind::Open, INSIDE),
    (libc::SYS_getdents, "getdents", CallKind::Read, INSIDE),
    (libc::SYS_chmod, "chmod", CallKind::Attr, INSIDE),
    (libc::SYS_chown, "chown", CallKind::Attr, INSIDE),
    (libc::SYS_lchown, "lchown", CallKind::Attr, INSIDE),
    (libc::SYS_utimes, "utimes", CallKind::Attr, INSIDE),
];
#[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "arm")))]
const OLD: &[Call] = &[];

/// Machines with 32-bit addresses have mmap2, whose offset counts in pages.
#[cfg(target_pointer_width = "64")]
const MAPS: &[Call] = &[(libc::SYS_mmap, "mmap", CallKind::Mmap, MMAP)];
#[cfg(not(target_pointer_width = "64"))]
const MAPS: &[Call] = &[(libc::SYS_mmap2, "mmap2", CallKind::Other, MMAP)];

/// Returns the number of read(2).
pub(super) fn read_number() -> u32 {
    libc::SYS_read as u32
}

/// Returns the kind of each system call (`enum mostrace_call_kind`) and the place of its arguments, by number.
pub(crate) fn kinds() -> [u16; CALLS_MAX] {
    let mut kinds = [0; CALLS_MAX];
    for &(number, _, kind, how) in CALLS.iter().chain(MAPS).chain(OLD) {
        let place = usize::try_from(number).ok().and_then(|n| kinds.get_mut(n));
        if let Some(place) = place {
            *place = kind as u16 | how;
        }
    }
    kinds
}

/// The prefix of the kernel's functions for system calls; None if these are not called with the registers.
const FUNCTION: Option<&str> = if cfg!(target_arch = "x86_64") {
    Some("__x64_sys_")
} else if cfg!(target_arch = "aarch64") {
    Some("__arm64_sys_")
} else {
    None
};

/// Returns the kernel's functions of all recorded calls except those that write. None if the names are not known for this machine.
pub(super) fn functions() -> Option<Vec<String>> {
    let prefix = FUNCTION?;
    let calls = CALLS.iter().chain(MAPS).chain(OLD);
    let recorded = calls.filter(|&&(_, _, kind, how)| how & INSIDE == 0 && kind != CallKind::Write);
    Some(
        recorded
            .map(|(_, name, ..)| format!("{prefix}{name}"))
            .collect(),
    )
}

/// Returns a system call's number in the form that the probes compare.
pub(super) fn number(call: i64) -> i32 {
    i32::try_from(call).unwrap_or(-1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If the kernel did not know one of the names, all calls of the machine would be traced.
    #[test]
    fn the_kernel_has_a_function_for_each_recorded_call() {
        let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap();
        let names: Vec<&str> = symbols
            .lines()
            .filter_map(|line| line.split_ascii_whitespace().nth(2))
            .collect();
        for function in functions().into_iter().flatten() {
            assert!(names.contains(&function.as_str()), "{function}");
        }
    }

    #[test]
    fn each_call_has_its_kind() {
        let kinds = kinds();
        let of = |number: i64| kinds[usize::try_from(number).unwrap()];
        assert_eq!(of(libc::SYS_write), 1);
        assert_eq!(of(libc::SYS_pwrite64), 1 | AT);
        assert_eq!(of(libc::SYS_unlinkat), 7 | PATH);
        assert_eq!(of(libc::SYS_getpid), 0);
        for &(number, _, kind, how) in CALLS.iter().chain(MAPS).chain(OLD) {
            assert_eq!(of(number), kind as u16 | how, "{number}: named twice?");
        }
    }
}
