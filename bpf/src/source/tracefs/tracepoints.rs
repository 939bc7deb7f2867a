// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tracepoints from which entries come, and what each shows about a file.

use std::ops::Range;
use std::path::Path;

use super::format::{Field, Format};
use super::owner::Owner;
use crate::error::Result;
use crate::machine::mountinfo;

/// What an event shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tells {
    /// A page joined a bio; 7.x has folios in the name. The page may be a directory's.
    F2fsPage,
    /// A file is written, which is a regular one.
    F2fsRegular,
    /// An inode left memory; its number may belong to another file from then on.
    F2fsGone,
    /// Blocks of a file were looked up or allocated.
    ExtMapped,
    /// Blocks no longer have an owner.
    ExtFreed,
    /// A file is written, with its path but no device; used only while there is just one f2fs.
    Path,
    /// A bio was queued.
    Queue,
}

/// The tracepoints. A kernel may lack any of them except the last.
const EVENTS: [(&str, Tells); 13] = [
    ("f2fs/f2fs_submit_page_write", Tells::F2fsPage),
    ("f2fs/f2fs_submit_page_bio", Tells::F2fsPage),
    ("f2fs/f2fs_submit_folio_write", Tells::F2fsPage),
    ("f2fs/f2fs_submit_folio_bio", Tells::F2fsPage),
    ("f2fs/f2fs_write_begin", Tells::F2fsRegular),
    ("f2fs/f2fs_direct_IO_enter", Tells::F2fsRegular),
    ("f2fs/f2fs_evict_inode", Tells::F2fsGone),
    ("ext4/ext4_ext_map_blocks_exit", Tells::ExtMapped),
    ("ext4/ext4_ind_map_blocks_exit", Tells::ExtMapped),
    ("ext4/ext4_free_blocks", Tells::ExtFreed),
    ("f2fs/f2fs_datawrite_start", Tells::Path),
    ("android_fs/android_fs_datawrite_start", Tells::Path),
    ("block/block_bio_queue", Tells::Queue),
];

/// Flags of ext4's lookups that are used only for the contents of regular files, when they are written back or written directly.
const OF_REGULAR: [&str; 4] = ["DELALLOC", "PRE_IO", "IO_SUBMIT", "UNWRIT"];

/// An enabled tracepoint.
#[derive(Debug)]
pub(super) struct Event {
    pub tells: Tells,
    pub format: Format,
}

impl Event {
    /// Returns the field with this name.
    pub fn field(&self, name: &str) -> Option<Field> {
        self.format.find(name)
    }

    /// Returns the number in the field with this name.
    pub fn number(&self, name: &str, record: &[u8]) -> Option<u64> {
        self.field(name)?.number(record)
    }
}

/// Finds the tracepoints that the kernel has and that are useful.
///
/// # Errors
/// Returns an error if the kernel has no tracepoint of bios.
pub(super) fn find(root: &Path, has_volume: bool) -> Result<Vec<(&'static str, Event)>> {
    let one_f2fs = mountinfo::all().iter().filter(|m| m.kind == "f2fs").count() == 1;
    let mut found = Vec::new();
    for (name, tells) in EVENTS {
        let wanted = match tells {
            Tells::Queue => true,
            Tells::Path => has_volume && one_f2fs,
            _ => has_volume,
        };
        if !wanted {
            continue;
        }
        match Format::read(root, name) {
            Ok(format) => found.push((name, Event { tells, format })),
            Err(e) if tells == Tells::Queue => return Err(e),
            Err(_) => {}
        }
    }
    Ok(found)
}

/// `enum page_type` of f2fs: a page of contents, or of a node.
const F2FS_DATA: u64 = 0;
const F2FS_NODE: u64 = 1;
const REQ_OP_WRITE: u64 = 1;

/// Returns the block to which a page goes, and its owner.
pub(super) fn f2fs_page(event: &Event, record: &[u8]) -> Option<(u64, Owner)> {
    if event.number("op", record)? != REQ_OP_WRITE {
        return None;
    }
    let is_node = match event.number("type", record)? {
        F2FS_DATA => false,
        F2FS_NODE => true,
        _ => return None,
    };
    let ino = event.number("ino", record)?;
    let owner = Owner {
        ino: if is_node { 0 } else { ino },
        index: event.number("index", record)?,
        is_node,
    };
    Some((event.number("new_blkaddr", record)?, owner))
}

/// Returns blocks of a regular file, and their owner.
pub(super) fn mapped(event: &Event, record: &[u8]) -> Option<(Range<u64>, Owner)> {
    let of_regular = event.format.flags(&OF_REGULAR);
    if event.number("flags", record)? & of_regular == 0 {
        return None;
    }
    let blocks = u64::try_from(event.field("ret")?.signed(record)?).ok()?;
    let start = event.number("pblk", record)?;
    let owner = Owner {
        ino: event.number("ino", record)?,
        index: event.number("lblk", record)?,
        is_node: false,
    };
    (start > 0 && blocks > 0).then(|| (start..start + blocks, owner))
}

/// Returns the blocks that no longer have an owner.
pub(super) fn freed(event: &Event, record: &[u8]) -> Option<Range<u64>> {
    let start = event.number("block", record)?;
    let count = event.number("count", record)?;
    Some(start..start.checked_add(count)?)
}

/// Returns the inode of a file that is written, and its path.
pub(super) fn path(event: &Event, record: &[u8]) -> Option<(u64, Vec<u8>)> {
    let path = event.field("pathbuf")?.text(record)?;
    let ino = event.number("ino", record)?;
    path.starts_with(b"/").then(|| (ino, path.to_vec()))
}
