// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flags of recorded calls: those of asm-generic/fcntl.h, linux/falloc.h, linux/fs.h and linux/stat.h. Some of the
//! `O_…` have other values on some machines.

use rustix::fs::OFlags;

pub(crate) const O_ACCMODE: u32 = 0o3;
pub(crate) const O_WRONLY: u32 = 0o1;
pub(crate) const O_RDWR: u32 = 0o2;
pub(crate) const O_CREAT: u32 = 0o100;
pub(crate) const O_EXCL: u32 = 0o200;
pub(crate) const O_TRUNC: u32 = 0o1000;
pub(crate) const O_APPEND: u32 = 0o2000;
pub(crate) const O_DSYNC: u32 = 0o1_0000;
pub(crate) const O_DIRECT: u32 = 0o4_0000;
pub(crate) const O_DIRECTORY: u32 = 0o20_0000;
pub(crate) const O_NOFOLLOW: u32 = 0o40_0000;
pub(crate) const O_NOATIME: u32 = 0o100_0000;
/// `O_SYNC` consists of this bit and `O_DSYNC`.
pub(crate) const O_SYNC_ALONE: u32 = 0o400_0000;
pub(crate) const O_PATH: u32 = 0o1000_0000;
pub(crate) const O_TMPFILE: u32 = 0o2000_0000 | O_DIRECTORY;

pub(crate) const S_IFMT: u32 = 0o17_0000;
pub(crate) const S_IFDIR: u32 = 0o4_0000;
pub(crate) const S_IFREG: u32 = 0o10_0000;

pub(crate) const RENAME_NOREPLACE: u32 = 1;
pub(crate) const RENAME_EXCHANGE: u32 = 2;
pub(crate) const RENAME_WHITEOUT: u32 = 4;

pub(crate) const FALLOC_KEEP_SIZE: u32 = 0x1;
/// `FALLOC_FL_COLLAPSE_RANGE` and `FALLOC_FL_INSERT_RANGE` move what lies behind the range.
pub(crate) const FALLOC_MOVES: u32 = 0x8 | 0x20;

pub(crate) const SYNC_FILE_RANGE_WAIT_AFTER: u32 = 4;

/// Converts flags to this machine's values, without those that concern only the descriptor.
pub(crate) fn native(flags: u32) -> OFlags {
    let known = [
        (O_WRONLY, OFlags::WRONLY),
        (O_RDWR, OFlags::RDWR),
        (O_CREAT, OFlags::CREATE),
        (O_EXCL, OFlags::EXCL),
        (O_TRUNC, OFlags::TRUNC),
        (O_APPEND, OFlags::APPEND),
        // rustix's own DSYNC is O_SYNC.
        (O_DSYNC, OFlags::from_bits_retain(libc::O_DSYNC as u32)),
        (O_DIRECT, OFlags::DIRECT),
        (O_DIRECTORY, OFlags::DIRECTORY),
        (O_NOFOLLOW, OFlags::NOFOLLOW),
        (O_NOATIME, OFlags::NOATIME),
        (O_SYNC_ALONE | O_DSYNC, OFlags::SYNC),
        (O_PATH, OFlags::PATH),
        (O_TMPFILE, OFlags::TMPFILE),
    ];
    let set = known.iter().filter(|(flag, _)| flags & flag == *flag);
    set.fold(OFlags::empty(), |all, (_, native)| all | *native)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_those_of_this_machine() {
        let flags = O_RDWR | O_CREAT | O_SYNC_ALONE | O_DSYNC | O_DIRECT;
        let native = native(flags);
        assert_eq!(
            native.bits(),
            (libc::O_RDWR | libc::O_CREAT | libc::O_SYNC | libc::O_DIRECT) as u32
        );
        assert_eq!(
            super::native(O_WRONLY | O_DSYNC).bits(),
            (libc::O_WRONLY | libc::O_DSYNC) as u32
        );
        assert_eq!(super::native(O_TMPFILE).bits(), libc::O_TMPFILE as u32);
        assert_eq!(super::native(0o2000_0000), OFlags::empty());
    }
}
