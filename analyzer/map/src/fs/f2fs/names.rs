// SPDX-License-Identifier: MIT OR Apache-2.0
//! Directory entries, read from the directories' blocks.
//!
//! The levels of hashed buckets only speed up lookups; here all blocks are read.

use std::collections::HashMap;
use std::ops::Range;

use super::block::{self, Blocks};
use super::dentry::{self, Dentry};
use super::numbers::{BlkAddr, Ino};
use super::recovery::NewName;
use super::superblock::SuperBlock;
use crate::fs::bits;
use crate::fs::names::{Directories, FileName, encrypted};
use crate::fs::notices::Notices;
use fixedbitset::FixedBitSet;

/// The places where a directory stores its entries.
#[derive(Debug, Default)]
pub struct Directory {
    /// Its blocks, as runs.
    pub runs: Vec<Range<BlkAddr>>,
    /// The entries inside its inode.
    pub inline: Vec<Dentry>,
    /// True if the names are ciphertext; they are returned as `<encrypted:HEX>`.
    pub is_encrypted: bool,
}

/// Number of blocks read at once.
const CHUNK: u32 = 256;

/// Reads the directories of an image one by one.
pub struct Tree<'a> {
    blocks: Blocks<'a>,
    sb: &'a SuperBlock,
    directories: HashMap<Ino, Directory>,
    new: &'a [NewName],
    notices: &'a mut Notices,
    /// The blocks read so far: a damaged image may give one block to many directories.
    read: FixedBitSet,
}

impl<'a> Tree<'a> {
    /// Starts with no directory read. `new` holds the names that are newer than the directories.
    pub fn new(
        blocks: Blocks<'a>,
        sb: &'a SuperBlock,
        directories: HashMap<Ino, Directory>,
        new: &'a [NewName],
        notices: &'a mut Notices,
    ) -> Tree<'a> {
        Tree {
            blocks,
            sb,
            directories,
            new,
            notices,
            read: sb.no_main_blocks(),
        }
    }

    fn read_run(&mut self, ino: Ino, run: Range<BlkAddr>, entries: &mut Vec<Dentry>) {
        let count = run.start.up_to(run.end);
        let at = format_args!("directory {ino}, block {}", run.start);
        let buf = match self.blocks.read(run.start, count, at) {
            Ok(buf) => buf,
            Err(error) => return self.notices.push(error.to_string()),
        };
        for (nth, blkaddr) in (0..).zip(run.start.until(run.end)) {
            let is_new = self.sb.in_main(blkaddr);
            let is_new = is_new.is_some_and(|n| bits::insert(&mut self.read, n));
            if !is_new {
                continue;
            }
            if let Err(slot) = dentry::parse(self.blocks.nth(&buf, nth), entries) {
                self.notices.push(format!(
                    "directory {ino}, block {blkaddr}: bad entry in slot {slot}"
                ));
            }
        }
    }
}

impl Directories for Tree<'_> {
    type Ino = Ino;

    const MISSING: &'static str = "was not found";

    fn contains(&self, ino: Ino) -> bool {
        self.directories.contains_key(&ino)
    }

    fn entries(&mut self, ino: Ino) -> Vec<(Ino, FileName)> {
        let Some(directory) = self.directories.get_mut(&ino).map(std::mem::take) else {
            return Vec::new();
        };
        let mut entries = directory.inline;
        let blocks = directory.runs.iter().flat_map(|run| {
            let firsts = run.start.until(run.end);
            let firsts = firsts.step_by(block::index(CHUNK));
            firsts.map(|first| first..run.end.min(first.plus(CHUNK)))
        });
        for run in blocks {
            self.read_run(ino, run, &mut entries);
        }
        for new in self.new.iter().filter(|new| new.parent == ino) {
            let name = new.name.clone();
            entries.retain(|entry| entry.name != name);
            entries.push(Dentry { ino: new.ino, name });
        }
        if directory.is_encrypted {
            let names = entries.iter_mut().map(|entry| &mut entry.name);
            names.for_each(|name| *name = encrypted(name));
        }
        entries
            .into_iter()
            .map(|entry| (entry.ino, entry.name))
            .collect()
    }

    fn note(&mut self, line: String) {
        self.notices.push(line);
    }
}
