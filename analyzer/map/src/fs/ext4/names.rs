// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the entries of directories from the directories' own blocks.
//!
//! debugfs's `ls` prints names as they are, including newlines, so its output cannot be parsed exactly.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::block_list::Run;
use super::dirent;
use super::numbers::{FsBlock, Ino};
use super::superblock::{SuperBlock, data_blocks};
use crate::fs::image::Image;
use crate::fs::names::{Directories, FileName, encrypted};
use crate::fs::notices::Notices;
use crate::fs::seen::Seen;

/// The places where a directory stores its entries.
#[derive(Debug, Default)]
pub struct Directory {
    /// Its blocks, as runs.
    pub runs: Vec<Run>,
    /// The areas inside its inode (inline_data).
    pub inline: Vec<Vec<u8>>,
    /// True if its names are ciphertext; they are returned as `<encrypted:HEX>`.
    pub encrypted: bool,
    /// Its names in place of those in its blocks, if fast commits changed them.
    pub replayed: Option<ReplayedNames>,
}

/// The names in a directory that fast commits changed, in the order in which they were read or made.
#[derive(Clone, Debug, Default)]
pub struct ReplayedNames {
    names: BTreeMap<Box<[u8]>, (u64, Ino)>,
    made: u64,
}

impl ReplayedNames {
    /// Adds a name. Returns false if it exists.
    pub fn add(&mut self, name: &[u8], inode: Ino) -> bool {
        let is_new = !self.names.contains_key(name);
        if is_new {
            self.made = self.made.saturating_add(1);
            self.names.insert(name.into(), (self.made, inode));
        }
        is_new
    }

    /// Removes a name. Returns false if it is not this inode's.
    pub fn remove(&mut self, name: &[u8], inode: Ino) -> bool {
        let is_its = self.names.get(name).is_some_and(|&(_, of)| of == inode);
        is_its && self.names.remove(name).is_some()
    }

    fn in_order(&self) -> Vec<(&[u8], Ino)> {
        let named = self.names.iter();
        let mut all: Vec<_> = named
            .map(|(name, &(nth, inode))| (nth, &**name, inode))
            .collect();
        all.sort_unstable_by_key(|(nth, ..)| *nth);
        all.into_iter()
            .map(|(_, name, inode)| (name, inode))
            .collect()
    }
}

impl Directory {
    /// Returns a name as it appears in paths.
    fn shown(&self, name: &[u8]) -> FileName {
        match self.encrypted {
            true => encrypted(name),
            false => name.into(),
        }
    }
}

/// Reads the directories of an image.
pub struct Tree<'a> {
    image: &'a Image,
    sb: &'a SuperBlock,
    directories: &'a HashMap<Ino, Directory>,
    notices: &'a mut Notices,
    /// The directory blocks read so far: a damaged image may give one block to many directories.
    read: Seen,
}

impl<'a> Tree<'a> {
    /// Starts with no directory read.
    pub fn new(
        image: &'a Image,
        sb: &'a SuperBlock,
        directories: &'a HashMap<Ino, Directory>,
        notices: &'a mut Notices,
    ) -> Tree<'a> {
        Tree {
            image,
            sb,
            directories,
            notices,
            read: Seen::default(),
        }
    }

    fn parse(
        &mut self,
        area: &[u8],
        at: std::fmt::Arguments,
        inode: Ino,
        directory: &Directory,
        entries: &mut Vec<(Ino, FileName)>,
    ) {
        let parsed = dirent::parse(area, |entry| {
            entries.push((Ino(entry.inode), directory.shown(entry.name)));
        });
        if let Err(offset) = parsed {
            self.notices.push(format!(
                "inode {inode}: directory {at}: bad entry at byte {offset}"
            ));
        }
    }
}

impl Directories for Tree<'_> {
    type Ino = Ino;

    const MISSING: &'static str = "is not in use";

    fn contains(&self, inode: Ino) -> bool {
        self.directories.contains_key(&inode)
    }

    fn entries(&mut self, inode: Ino) -> Vec<(Ino, FileName)> {
        let mut entries = Vec::new();
        let Some(directory) = self.directories.get(&inode) else {
            return entries;
        };
        if let Some(replayed) = &directory.replayed {
            let names = replayed.in_order().into_iter();
            return names
                .map(|(name, inode)| (inode, directory.shown(name)))
                .collect();
        }
        for (nth, area) in directory.inline.iter().enumerate() {
            self.parse(
                area,
                format_args!("inline area {nth}"),
                inode,
                directory,
                &mut entries,
            );
        }
        let (image, sb) = (self.image, self.sb);
        let mut blocks = Vec::new();
        for run in &directory.runs {
            let unread = self.read.take(run.block.0..run.block.plus(run.blocks).0);
            let at = |block| (run.logical.plus(run.block.up_to(block)), block);
            // A hole is reported once, as its first block.
            let some = |range: Range<u64>| {
                let hole = Some(FsBlock(range.start)).filter(|&at| sb.next_data(image, at) > at);
                hole.into_iter().chain(data_blocks(image, sb, range))
            };
            blocks.extend(unread.into_iter().flat_map(some).map(at));
        }
        for (logical, block) in blocks {
            let at = format!("inode {inode}, directory block {logical}");
            match self.sb.read_block(self.image, block, at) {
                Ok(area) => {
                    let at = format_args!("block {logical}");
                    self.parse(&area, at, inode, directory, &mut entries);
                }
                // The following blocks are past the end of the image too.
                Err(error) => return (self.notices.push(error.to_string()), entries).1,
            }
        }
        entries
    }

    fn note(&mut self, line: String) {
        self.notices.push(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_made_once_and_removed_by_its_inode_alone() {
        let mut names = ReplayedNames::default();
        assert!(names.add(b"b", Ino(12)));
        assert!(names.add(b"a", Ino(13)));
        assert!(!names.add(b"b", Ino(14)), "it exists");
        assert_eq!(names.in_order(), [(&b"b"[..], Ino(12)), (b"a", Ino(13))]);
        assert!(!names.remove(b"b", Ino(14)), "it is another's");
        assert!(names.remove(b"b", Ino(12)));
        assert!(!names.remove(b"b", Ino(12)), "it is gone");
        assert!(names.add(b"b", Ino(14)));
        assert_eq!(names.in_order(), [(&b"a"[..], Ino(13)), (b"b", Ino(14))]);
    }
}
