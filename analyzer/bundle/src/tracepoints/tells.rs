// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tracepoints from which entries come, and what each shows about a file.

use std::ops::Range;

use super::owner::Owner;
use super::paths::Told;

/// This is what an event shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tells {
    /// A page joined a bio; 7.x has folios in the name. The page may be a directory's.
    F2fsPage,
    /// A file is written, which is a regular one.
    Regular,
    /// An inode left memory; its number may belong to another file from then on.
    Gone,
    /// Blocks of a file were looked up or allocated.
    ExtMapped,
    /// Blocks no longer have an owner.
    ExtFreed,
    /// A file is written, with its path but no device; there is only one filesystem that tells this.
    Path,
    /// The same, where several filesystems tell it.
    PathOfSome,
    /// A bio was queued.
    Queue,
}

/// The tracepoints. A kernel may lack any of them except the last.
pub const EVENTS: [(&str, Tells); 12] = [
    ("f2fs/f2fs_submit_page_write", Tells::F2fsPage),
    ("f2fs/f2fs_submit_page_bio", Tells::F2fsPage),
    ("f2fs/f2fs_submit_folio_write", Tells::F2fsPage),
    ("f2fs/f2fs_submit_folio_bio", Tells::F2fsPage),
    ("f2fs/f2fs_write_begin", Tells::Regular),
    ("f2fs/f2fs_direct_IO_enter", Tells::Regular),
    ("f2fs/f2fs_evict_inode", Tells::Gone),
    ("ext4/ext4_evict_inode", Tells::Gone),
    ("ext4/ext4_ext_map_blocks_exit", Tells::ExtMapped),
    ("ext4/ext4_ind_map_blocks_exit", Tells::ExtMapped),
    ("ext4/ext4_free_blocks", Tells::ExtFreed),
    ("block/block_bio_queue", Tells::Queue),
];

/// The tracepoints that tell a path, and the filesystems that do.
pub const PATHS: [(&str, &[&str]); 2] = [
    ("f2fs/f2fs_datawrite_start", &["f2fs"]),
    (
        "android_fs/android_fs_datawrite_start",
        &["f2fs", "ext4", "ext3", "ext2"],
    ),
];

/// The tracepoints of ext4 that follow such a one; those of f2fs are listened to anyway.
pub const FOLLOWING: [&str; 2] = ["ext4/ext4_write_begin", "ext4/ext4_da_write_begin"];

/// Flags of ext4's lookups that are used only for the contents of regular files, when they are written back or written directly.
const OF_REGULAR: [&str; 4] = ["DELALLOC", "PRE_IO", "IO_SUBMIT", "UNWRIT"];

/// The fields of an event, by the names that the kernel gives them.
pub trait Fields {
    /// Returns an unsigned number.
    fn number(&self, field: &str) -> Option<u64>;

    /// Returns a signed number.
    fn signed(&self, field: &str) -> Option<i64>;

    /// Returns a text.
    fn text(&self, field: &str) -> Option<&[u8]>;

    /// Returns true if one of these flags is set.
    fn has_flag(&self, field: &str, names: &[&str]) -> Option<bool>;

    /// Returns the thread in which the event happened.
    fn thread(&self) -> Option<u32>;
}

/// `enum page_type` of f2fs: a page of contents, or of a node.
const F2FS_DATA: u64 = 0;
const F2FS_NODE: u64 = 1;
const REQ_OP_WRITE: u64 = 1;

/// Returns the blocks that an event places, and their owner.
pub(super) fn owned(tells: Tells, fields: &dyn Fields) -> Option<(Range<u64>, Owner)> {
    match tells {
        Tells::F2fsPage => f2fs_page(fields),
        Tells::ExtMapped => mapped(fields),
        _ => None,
    }
}

/// Returns the first block that an event places.
pub fn placed(tells: Tells, fields: &dyn Fields) -> Option<u64> {
    Some(owned(tells, fields)?.0.start)
}

/// Returns the block to which a page goes, and its owner.
fn f2fs_page(fields: &dyn Fields) -> Option<(Range<u64>, Owner)> {
    if fields.number("op")? != REQ_OP_WRITE {
        return None;
    }
    let is_node = match fields.number("type")? {
        F2FS_DATA => false,
        F2FS_NODE => true,
        _ => return None,
    };
    let ino = fields.number("ino")?;
    let owner = Owner {
        ino: if is_node { 0 } else { ino },
        index: fields.number("index")?,
        is_node,
    };
    let block = fields.number("new_blkaddr")?;
    Some((block..block.checked_add(1)?, owner))
}

/// Returns blocks of a regular file, and their owner.
fn mapped(fields: &dyn Fields) -> Option<(Range<u64>, Owner)> {
    if !fields.has_flag("flags", &OF_REGULAR)? {
        return None;
    }
    let blocks = u64::try_from(fields.signed("ret")?).ok()?;
    let start = fields.number("pblk")?;
    let owner = Owner {
        ino: fields.number("ino")?,
        index: fields.number("lblk")?,
        is_node: false,
    };
    let end = start.checked_add(blocks)?;
    (start > 0 && blocks > 0).then_some((start..end, owner))
}

/// Returns the blocks that no longer have an owner.
pub(super) fn freed(fields: &dyn Fields) -> Option<Range<u64>> {
    let start = fields.number("block")?;
    let count = fields.number("count")?;
    Some(start..start.checked_add(count)?)
}

/// Returns the inode of a file that is written, and its path.
pub(super) fn path(fields: &dyn Fields) -> Option<Told> {
    let path = fields.text("pathbuf")?;
    let start = fields.number("offset")?;
    let bytes = fields.number("bytes")?;
    path.starts_with(b"/").then_some(Told {
        ino: fields.number("ino")?,
        bytes: start..start.checked_add(bytes)?,
        path: path.to_vec(),
    })
}

/// Returns the thread, the inode of a file that is written, and the place.
pub(super) fn written(fields: &dyn Fields) -> Option<(u32, u64, u64)> {
    let pos = fields.number("pos").or_else(|| fields.number("ki_pos"))?;
    Some((fields.thread()?, fields.number("ino")?, pos))
}
