// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of flags, and their values in the kernel's generic headers.

pub(crate) type Words = [(&'static str, u64)];

/// Returns the sum of flags that are joined by `|`; unknown names count as 0.
pub(crate) fn of(text: &str, words: &Words) -> u64 {
    let value = |name: &str| words.iter().find(|(known, _)| *known == name);
    text.split('|')
        .filter_map(value)
        .fold(0, |sum, (_, value)| sum | value)
}

/// `<asm-generic/fcntl.h>`
pub(crate) const OPEN: &Words = &[
    ("O_RDONLY", 0),
    ("O_WRONLY", 0o1),
    ("O_RDWR", 0o2),
    ("O_CREAT", 0o100),
    ("O_EXCL", 0o200),
    ("O_NOCTTY", 0o400),
    ("O_TRUNC", 0o1000),
    ("O_APPEND", 0o2000),
    ("O_NONBLOCK", 0o4000),
    ("O_DSYNC", 0o10000),
    ("O_DIRECT", 0o40000),
    ("O_LARGEFILE", 0o100_000),
    ("O_DIRECTORY", 0o200_000),
    ("O_NOFOLLOW", 0o400_000),
    ("O_NOATIME", 0o1_000_000),
    ("O_CLOEXEC", 0o2_000_000),
    ("O_SYNC", 0o4_010_000),
    ("O_PATH", 0o10_000_000),
    ("O_TMPFILE", 0o20_200_000),
];

/// `<linux/fcntl.h>`
pub(crate) const AT: &Words = &[
    ("AT_SYMLINK_NOFOLLOW", 0x100),
    ("AT_REMOVEDIR", 0x200),
    ("AT_SYMLINK_FOLLOW", 0x400),
    ("AT_EMPTY_PATH", 0x1000),
];

/// `<linux/fs.h>`
pub(crate) const RENAME: &Words = &[
    ("RENAME_NOREPLACE", 1),
    ("RENAME_EXCHANGE", 2),
    ("RENAME_WHITEOUT", 4),
];

/// `<linux/falloc.h>`
pub(crate) const FALLOCATE: &Words = &[
    ("FALLOC_FL_KEEP_SIZE", 0x01),
    ("FALLOC_FL_PUNCH_HOLE", 0x02),
    ("FALLOC_FL_COLLAPSE_RANGE", 0x08),
    ("FALLOC_FL_ZERO_RANGE", 0x10),
    ("FALLOC_FL_INSERT_RANGE", 0x20),
    ("FALLOC_FL_UNSHARE_RANGE", 0x40),
];

/// `<linux/fs.h>`
pub(crate) const SYNC_RANGE: &Words = &[
    ("SYNC_FILE_RANGE_WAIT_BEFORE", 1),
    ("SYNC_FILE_RANGE_WRITE", 2),
    ("SYNC_FILE_RANGE_WAIT_AFTER", 4),
];

/// `<linux/fadvise.h>`
pub(crate) const FADVISE: &Words = &[
    ("POSIX_FADV_NORMAL", 0),
    ("POSIX_FADV_RANDOM", 1),
    ("POSIX_FADV_SEQUENTIAL", 2),
    ("POSIX_FADV_WILLNEED", 3),
    ("POSIX_FADV_DONTNEED", 4),
    ("POSIX_FADV_NOREUSE", 5),
];

/// `<linux/xattr.h>`
pub(crate) const XATTR: &Words = &[("XATTR_CREATE", 1), ("XATTR_REPLACE", 2)];

/// `<linux/stat.h>`
pub(crate) const MODE: &Words = &[
    ("S_IFIFO", 0o010_000),
    ("S_IFCHR", 0o020_000),
    ("S_IFDIR", 0o040_000),
    ("S_IFBLK", 0o060_000),
    ("S_IFREG", 0o100_000),
    ("S_IFLNK", 0o120_000),
    ("S_IFSOCK", 0o140_000),
    ("S_ISUID", 0o4000),
    ("S_ISGID", 0o2000),
    ("S_ISVTX", 0o1000),
];

/// `<linux/mman.h>`
pub(crate) const MMAP: &Words = &[
    ("MAP_SHARED", 1),
    ("MAP_SHARED_VALIDATE", 3),
    ("MS_ASYNC", 1),
    ("MS_INVALIDATE", 2),
    ("MS_SYNC", 4),
    ("PROT_WRITE", 2),
];

/// `<linux/sched.h>`
pub(crate) const CLONE: &Words = &[
    ("CLONE_FS", 0x200),
    ("CLONE_FILES", 0x400),
    ("CLONE_THREAD", 0x1_0000),
];
