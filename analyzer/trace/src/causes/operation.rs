// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations, derived from the filesystem's function, the handle's type and the system call.

use mostrace_bundle::entry::CallKind;
use strum::{IntoStaticStr, VariantArray};

use crate::attribute::Mounting;

/// The operation of a task on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Operation {
    /// Contents were written.
    Write,
    /// Contents were read.
    Read,
    /// Blocks were allocated for contents, at once or when they were written out.
    Allocate,
    /// A name was made: a file, a link, a node.
    Create,
    /// A name was removed, and the file with its last one.
    Unlink,
    /// A name was changed.
    Rename,
    /// The length was changed.
    Truncate,
    /// A task asked for the file to be durable.
    Fsync,
    /// The inode was marked dirty: times, or the length after a write.
    Time,
    /// An extended attribute was changed.
    Xattr,
    /// A directory was made.
    Mkdir,
    /// The filesystem wrote a checkpoint.
    Checkpoint,
    /// The filesystem moved blocks to make room.
    Gc,
    /// The filesystem was mounted; in older recordings also unmounted.
    Mount,
    /// Something else.
    Other,
    /// Contents were written that a commit made durable at once (f2fs's atomic writes).
    AtomicWrite,
    /// The filesystem was unmounted.
    Umount,
    /// `ext4lazyinit` prepared the filesystem's groups: their inode tables and bitmaps.
    LazyInit,
    /// A mount freed or truncated inodes that had no name or were being truncated when the filesystem was last in use.
    OrphanCleanup,
    /// The usage of a user, group or project was brought up to date.
    Quota,
    /// A range of the disk was declared unused.
    Discard,
    /// A range of the disk was zeroed without carrying zeros.
    Zero,
}

/// `EXT4_HT_…` of fs/ext4/ext4_jbd2.h.
pub(super) mod handle_type {
    pub const WRITE_PAGE: u16 = 2;
    pub const MAP_BLOCKS: u16 = 3;
    pub const DIR: u16 = 4;
    pub const TRUNCATE: u16 = 5;
    pub const XATTR: u16 = 10;
    /// Marks blocks as written at the end of IO.
    pub const EXT_CONVERT: u16 = 11;
}

/// The functions of ext4 that do only one thing.
const FUNCTIONS: &[(&str, Operation)] = &[
    ("ext4_mkdir", Operation::Mkdir),
    ("ext4_unlink", Operation::Unlink),
    ("__ext4_unlink", Operation::Unlink),
    ("ext4_rmdir", Operation::Unlink),
    ("ext4_evict_inode", Operation::Unlink),
    ("ext4_rename", Operation::Rename),
    ("ext4_rename2", Operation::Rename),
    ("ext4_cross_rename", Operation::Rename),
    ("ext4_link", Operation::Create),
    ("ext4_symlink", Operation::Create),
    ("ext4_mknod", Operation::Create),
    ("ext4_tmpfile", Operation::Create),
    ("ext4_punch_hole", Operation::Truncate),
    ("ext4_collapse_range", Operation::Truncate),
    ("ext4_insert_range", Operation::Truncate),
    ("ext4_dirty_inode", Operation::Time),
    ("ext4_init_inode_table", Operation::LazyInit),
    ("ext4_acquire_dquot", Operation::Quota),
    ("ext4_release_dquot", Operation::Quota),
    ("ext4_write_dquot", Operation::Quota),
    ("ext4_write_info", Operation::Quota),
    ("ext4_quota_on", Operation::Quota),
    ("ext4_quota_off", Operation::Quota),
];

/// The functions by which ext4_orphan_cleanup frees and truncates inodes.
const ORPHANS: &[&str] = &["ext4_evict_inode", "ext4_truncate", "ext4_ext_truncate"];

/// Prefixes of the names of functions that allocate, whatever the call.
const ALLOCATE: &[&str] = &[
    "ext4_map_blocks",
    "ext4_do_writepages",
    "ext4_writepages",
    "mpage_",
    "ext4_iomap_",
    "ext4_alloc_file_blocks",
    "ext4_convert_unwritten",
    "ext4_write_begin",
    "ext4_da_write_begin",
    "ext4_page_mkwrite",
    "_ext4_get_block",
    "ext4_get_block",
    "__ext4_journalled_writepage",
    "ext4_zero_range",
];

impl Operation {
    /// Every value, in the order of their codes.
    pub const ALL: &[Operation] = Operation::VARIANTS;

    /// The word used in tables and files.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Derives the operation of a handle from the function that began it, its `h_type`, and the system call that it was part
    /// of.
    pub(super) fn of_handle(function: Option<&str>, kind: u16, call: CallKind) -> Operation {
        let of_function = function.and_then(|name| Operation::of_function(name, call));
        of_function
            .or_else(|| Operation::of_type(kind, call))
            .or_else(|| Operation::of_call(call))
            .unwrap_or(Operation::Other)
    }

    fn of_function(name: &str, call: CallKind) -> Option<Operation> {
        // Compilers make parts and clones, such as ext4_evict_inode.part.0, or add a number, such as $5c0f.
        let name = name.split(['.', '$']).next().unwrap_or(name);
        // No name can be removed before the filesystem is ready.
        if call == CallKind::FillSuper && ORPHANS.contains(&name) {
            return Some(Operation::OrphanCleanup);
        }
        if let Some((_, operation)) = FUNCTIONS.iter().find(|(known, _)| *known == name) {
            return Some(*operation);
        }
        match (name, call) {
            _ if name.contains("xattr") || name.contains("set_acl") => Some(Operation::Xattr),
            // The handle is begun while the inode is made.
            ("ext4_create" | "__ext4_new_inode", CallKind::Mkdir) => Some(Operation::Mkdir),
            ("ext4_create" | "__ext4_new_inode", _) => Some(Operation::Create),
            ("ext4_truncate" | "ext4_ext_truncate", CallKind::Unlink) => Some(Operation::Unlink),
            ("ext4_truncate" | "ext4_ext_truncate", _) => Some(Operation::Truncate),
            ("ext4_setattr", CallKind::Truncate | CallKind::Open) => Some(Operation::Truncate),
            // ext4_file_open notes the last mount point in the superblock.
            ("ext4_setattr" | "ext4_file_open", _) => Some(Operation::Other),
            _ if ALLOCATE.iter().any(|begins| name.starts_with(begins)) => {
                Some(Operation::Allocate)
            }
            _ => None,
        }
    }

    /// Returns the operation of a call for mounting.
    pub(super) fn of_mounting(call: Mounting) -> Operation {
        match call {
            Mounting::Mount => Operation::Mount,
            Mounting::Umount => Operation::Umount,
        }
    }

    /// Returns true if kernel threads do this of their own accord, not for a call.
    pub(super) fn is_background(self) -> bool {
        matches!(self, Operation::LazyInit | Operation::Quota)
    }

    fn of_type(kind: u16, call: CallKind) -> Option<Operation> {
        match (kind, call) {
            (handle_type::DIR, CallKind::Open | CallKind::Link) => Some(Operation::Create),
            (handle_type::TRUNCATE, CallKind::Unlink) => Some(Operation::Unlink),
            (handle_type::TRUNCATE, _) => Some(Operation::Truncate),
            (handle_type::XATTR, _) => Some(Operation::Xattr),
            (handle_type::WRITE_PAGE | handle_type::MAP_BLOCKS | handle_type::EXT_CONVERT, _) => {
                Some(Operation::Allocate)
            }
            _ => None,
        }
    }

    fn of_call(call: CallKind) -> Option<Operation> {
        Some(match call {
            CallKind::Write | CallKind::Splice | CallKind::CopyUp => Operation::Write,
            CallKind::Fallocate => Operation::Allocate,
            CallKind::Unlink => Operation::Unlink,
            CallKind::Rename => Operation::Rename,
            CallKind::Truncate => Operation::Truncate,
            CallKind::Mkdir => Operation::Mkdir,
            CallKind::Link | CallKind::Open => Operation::Create,
            CallKind::Xattr => Operation::Xattr,
            CallKind::Read => Operation::Time,
            CallKind::Mount | CallKind::FillSuper => Operation::Mount,
            CallKind::Umount => Operation::Umount,
            CallKind::Fsync
            | CallKind::Fdatasync
            | CallKind::SyncRange
            | CallKind::Msync
            | CallKind::Sync
            | CallKind::AtomicCommit => Operation::Fsync,
            CallKind::Checkpoint => Operation::Checkpoint,
            CallKind::Gc => Operation::Gc,
            CallKind::Other
            | CallKind::Close
            | CallKind::Uring
            | CallKind::Attr
            | CallKind::AtomicStart
            | CallKind::AtomicAbort
            | CallKind::Mmap => return None,
        })
    }
}

/// Returns true if calls of this kind ask for nothing but durability. See [`asks`](super::durability::asks) for all that do.
pub fn is_sync(call: CallKind) -> bool {
    matches!(
        Operation::of_call(call),
        Some(Operation::Fsync | Operation::Checkpoint)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_goes_before_the_type_and_the_type_before_the_call() {
        let of = Operation::of_handle;
        for (function, kind, call, operation) in [
            (
                Some("__ext4_new_inode"),
                4,
                CallKind::Open,
                Operation::Create,
            ),
            (
                Some("__ext4_new_inode"),
                4,
                CallKind::Mkdir,
                Operation::Mkdir,
            ),
            (
                Some("ext4_evict_inode.part.0"),
                5,
                CallKind::Other,
                Operation::Unlink,
            ),
            (
                Some("ext4_setattr"),
                1,
                CallKind::Truncate,
                Operation::Truncate,
            ),
            (Some("ext4_setattr"), 1, CallKind::Attr, Operation::Other),
            (
                Some("ext4_dirty_inode"),
                1,
                CallKind::Write,
                Operation::Time,
            ),
            (
                Some("ext4_do_writepages"),
                2,
                CallKind::Fsync,
                Operation::Allocate,
            ),
            (
                Some("ext4_xattr_set"),
                10,
                CallKind::Xattr,
                Operation::Xattr,
            ),
            (
                Some("ext4_new_name"),
                11,
                CallKind::Other,
                Operation::Allocate,
            ),
            (
                Some("ext4_evict_inode"),
                5,
                CallKind::FillSuper,
                Operation::OrphanCleanup,
            ),
            // An overlay's mount removes files of the filesystem below it.
            (
                Some("ext4_evict_inode"),
                5,
                CallKind::Mount,
                Operation::Unlink,
            ),
            (
                Some("ext4_init_inode_table"),
                1,
                CallKind::Other,
                Operation::LazyInit,
            ),
            (
                Some("ext4_write_dquot"),
                9,
                CallKind::Write,
                Operation::Quota,
            ),
            (Some("ext4_file_open"), 1, CallKind::Open, Operation::Other),
            (None, 1, CallKind::Umount, Operation::Umount),
            (None, 4, CallKind::Open, Operation::Create),
            (None, 5, CallKind::Unlink, Operation::Unlink),
            (None, 0, CallKind::Rename, Operation::Rename),
            (None, 0, CallKind::Other, Operation::Other),
        ] {
            assert_eq!(
                of(function, kind, call),
                operation,
                "{function:?} {kind} {call:?}"
            );
        }
    }
}
