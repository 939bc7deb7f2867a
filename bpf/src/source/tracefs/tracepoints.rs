// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tracepoints from which entries come, and what each shows about a file.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use super::format::{Field, Format};
use super::owner::Owner;
use super::paths::Told;
use crate::error::Result;
use crate::machine::mountinfo::{self, Mounted};

/// What an event shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tells {
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
const EVENTS: [(&str, Tells); 12] = [
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
const PATHS: [(&str, &[&str]); 2] = [
    ("f2fs/f2fs_datawrite_start", &["f2fs"]),
    (
        "android_fs/android_fs_datawrite_start",
        &["f2fs", "ext4", "ext3", "ext2"],
    ),
];

/// The tracepoints of ext4 that follow such a one; those of f2fs are listened to anyway.
const FOLLOWING: [&str; 2] = ["ext4/ext4_write_begin", "ext4/ext4_da_write_begin"];

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
    let mut found = Vec::new();
    let of_bios = |tells| matches!(tells, Tells::Queue);
    for (name, tells) in EVENTS {
        if !has_volume && !of_bios(tells) {
            continue;
        }
        match Format::read(root, name) {
            Ok(format) => found.push((name, Event { tells, format })),
            Err(e) if of_bios(tells) => return Err(e),
            Err(_) => {}
        }
    }
    if has_volume {
        found.extend(of_paths(root, &mountinfo::all()));
    }
    Ok(found)
}

/// Finds the tracepoints that tell a path, and those that then show whose it is.
fn of_paths(root: &Path, mounts: &[Mounted]) -> Vec<(&'static str, Event)> {
    let event = |name, tells| {
        Some((
            name,
            Event {
                tells,
                format: Format::read(root, name).ok()?,
            },
        ))
    };
    let mut found: Vec<_> = PATHS
        .iter()
        .filter_map(|(name, kinds)| match filesystems(mounts, kinds) {
            0 | 1 => event(*name, Tells::Path),
            _ => event(*name, Tells::PathOfSome),
        })
        .collect();
    if found
        .iter()
        .any(|(_, event)| event.tells == Tells::PathOfSome)
    {
        found.extend(
            FOLLOWING
                .iter()
                .filter_map(|name| event(*name, Tells::Regular)),
        );
    }
    found
}

/// Returns the number of mounted filesystems of these kinds, each of which may be mounted several times.
fn filesystems(mounts: &[Mounted], kinds: &[&str]) -> usize {
    let of_kind = mounts.iter().filter(|m| kinds.contains(&m.kind.as_str()));
    let devs: HashSet<&str> = of_kind.map(|m| m.dev.as_str()).collect();
    devs.len()
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
pub(super) fn path(event: &Event, record: &[u8]) -> Option<Told> {
    let path = event.field("pathbuf")?.text(record)?;
    let start = event.number("offset", record)?;
    let bytes = event.number("bytes", record)?;
    path.starts_with(b"/").then_some(Told {
        ino: event.number("ino", record)?,
        bytes: start..start.checked_add(bytes)?,
        path: path.to_vec(),
    })
}

/// Returns the thread, the inode of a file that is written, and the place.
pub(super) fn written(event: &Event, record: &[u8]) -> Option<(u32, u64, u64)> {
    let ino = event.number("ino", record)?;
    let pos = event.field("pos").or_else(|| event.field("ki_pos"))?;
    Some((thread(event, record)?, ino, pos.number(record)?))
}

/// Returns the thread in which an event happened.
pub(super) fn thread(event: &Event, record: &[u8]) -> Option<u32> {
    u32::try_from(event.number("common_pid", record)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filesystem_counts_once_however_often_it_is_mounted() {
        let mount = |dev: &str, kind: &str| Mounted {
            dev: dev.into(),
            kind: kind.into(),
            ..Mounted::default()
        };
        let mut mounts = vec![
            mount("7:0", "f2fs"),
            mount("7:0", "f2fs"),
            mount("7:1", "ext4"),
        ];
        assert_eq!(filesystems(&mounts, &["f2fs"]), 1);
        assert_eq!(filesystems(&mounts, &["f2fs", "ext4"]), 2);
        mounts.push(mount("7:2", "f2fs"));
        assert_eq!(filesystems(&mounts, &["f2fs"]), 2);
        assert_eq!(filesystems(&mounts, &["xfs"]), 0);
    }

    /// The formats are those of android-4.19.
    #[test]
    fn a_path_is_used_whichever_filesystems_tell_it() {
        let tracefs = tempfile::tempdir().unwrap();
        let describe = |event: &str, id: u16, fields: &str| {
            let folder = tracefs.path().join("events").join(event);
            std::fs::create_dir_all(&folder).unwrap();
            let common = "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
            let text = format!("name: x\nID: {id}\nformat:\n{common}{fields}\nprint fmt: \"\"\n");
            std::fs::write(folder.join("format"), text).unwrap();
        };
        describe(
            "android_fs/android_fs_datawrite_start",
            70,
            "\tfield:__data_loc char[] pathbuf;\toffset:8;\tsize:4;\tsigned:1;\n\
             \tfield:loff_t offset;\toffset:16;\tsize:8;\tsigned:1;\n\
             \tfield:int bytes;\toffset:24;\tsize:4;\tsigned:1;\n\
             \tfield:ino_t ino;\toffset:32;\tsize:8;\tsigned:0;\n",
        );
        describe(
            "ext4/ext4_da_write_begin",
            71,
            "\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
             \tfield:ino_t ino;\toffset:16;\tsize:8;\tsigned:0;\n\
             \tfield:loff_t pos;\toffset:24;\tsize:8;\tsigned:1;\n",
        );
        let mount = |dev: &str, kind: &str| Mounted {
            dev: dev.into(),
            kind: kind.into(),
            ..Mounted::default()
        };
        let tells = |mounts: &[Mounted]| -> Vec<Tells> {
            let found = of_paths(tracefs.path(), mounts);
            found.iter().map(|(_, event)| event.tells).collect()
        };
        let data = [mount("253:1", "f2fs"), mount("253:1", "f2fs")];
        assert_eq!(tells(&data), [Tells::Path]);
        let several = [mount("253:1", "f2fs"), mount("259:2", "ext4")];
        assert_eq!(tells(&several), [Tells::PathOfSome, Tells::Regular]);

        let found = of_paths(tracefs.path(), &several);
        let (told, begun) = (&found[0].1, &found[1].1);
        let mut record = vec![0; 40];
        record[4..8].copy_from_slice(&9u32.to_le_bytes());
        record[8..12].copy_from_slice(&[40, 0, 6, 0]);
        record[16..24].copy_from_slice(&4096u64.to_le_bytes());
        record[24..28].copy_from_slice(&100u32.to_le_bytes());
        record[32..40].copy_from_slice(&12u64.to_le_bytes());
        record.extend(b"/a.db\0");
        let expected = Told {
            ino: 12,
            bytes: 4096..4196,
            path: b"/a.db".to_vec(),
        };
        assert_eq!(path(told, &record), Some(expected));
        assert_eq!(thread(told, &record), Some(9));
        let mut record = vec![0; 32];
        record[4..8].copy_from_slice(&9u32.to_le_bytes());
        record[16..24].copy_from_slice(&12u64.to_le_bytes());
        record[24..32].copy_from_slice(&4096u64.to_le_bytes());
        assert_eq!(written(begun, &record), Some((9, 12, 4096)));
    }
}
