// SPDX-License-Identifier: MIT OR Apache-2.0
//! The directory tree: every inode's names, from the directories' blocks.
//!
//! The levels of hashed buckets are only a way to find a name; all the blocks are read.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;

use super::block;
use super::dentry::{self, Entry};
use super::numbers::{BlkAddr, Ino};
use super::recovery::NewName;
use super::superblock::SuperBlock;
use crate::fs::bits;
use crate::fs::image::Image;
use crate::fs::notices::Notices;
use crate::fs::progress::Part;
use crate::map::{Inode, Name};
use fixedbitset::FixedBitSet;

/// Where a directory keeps its entries.
#[derive(Debug, Default)]
pub struct Directory {
    /// Its blocks.
    pub runs: Vec<Range<BlkAddr>>,
    /// Those inside its inode.
    pub inline: Vec<Entry>,
    /// Its names are ciphertext. They are given as `<encrypted:HEX>`, as they may hold `/`.
    pub is_encrypted: bool,
}

/// Gives every inode that the root leads to its names. A directory gets one name only.
pub fn link(
    image: &Image,
    sb: &SuperBlock,
    directories: HashMap<Ino, Directory>,
    new: &[NewName],
    inodes: &mut HashMap<u64, Inode>,
    notices: &mut Notices,
    mut part: Part,
) {
    let read = sb.no_main_blocks();
    let mut tree = Tree {
        image,
        sb,
        new,
        notices,
        read,
    };
    let mut directories = directories;
    let root = u64::from(sb.root_ino);
    match inodes.get_mut(&root) {
        Some(inode) => inode.names.push(Name {
            parent: root,
            name: [].into(),
        }),
        None => tree
            .notices
            .push("there is no root directory, no file has a name"),
    }
    let mut found = HashSet::from([sb.root_ino]);
    let mut queue = VecDeque::from([sb.root_ino]);
    while let Some(parent) = queue.pop_front() {
        let Some(directory) = directories.get_mut(&parent) else {
            continue;
        };
        for Entry { ino, name } in tree.entries(parent, directory) {
            let is_directory = directories.contains_key(&ino);
            if is_directory && !found.insert(ino) {
                tree.notices
                    .push(format!("inode {ino}: a directory with two names"));
            } else if let Some(child) = inodes.get_mut(&ino.into()) {
                child.names.push(Name {
                    parent: parent.into(),
                    name,
                });
                queue.extend(is_directory.then_some(ino));
            } else {
                tree.notices
                    .push(format!("inode {ino}: has a name, but was not found"));
            }
        }
        part.add(1);
    }
}

struct Tree<'a> {
    image: &'a Image,
    sb: &'a SuperBlock,
    new: &'a [NewName],
    notices: &'a mut Notices,
    /// Blocks read so far: a damaged image may give one to many directories.
    read: FixedBitSet,
}

impl Tree<'_> {
    fn entries(&mut self, ino: Ino, directory: &mut Directory) -> Vec<Entry> {
        let mut entries = std::mem::take(&mut directory.inline);
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
            entries.push(Entry { ino: new.ino, name });
        }
        if directory.is_encrypted {
            entries
                .iter_mut()
                .for_each(|entry| entry.name = veiled(&entry.name));
        }
        entries
    }

    fn read_run(&mut self, ino: Ino, run: Range<BlkAddr>, entries: &mut Vec<Entry>) {
        let blocks = run.start.up_to(run.end);
        let at = format_args!("directory {ino}, block {}", run.start);
        let buf = match block::read(self.image, run.start, blocks, at) {
            Ok(buf) => buf,
            Err(error) => return self.notices.push(error.to_string()),
        };
        for (nth, blkaddr) in (0..).zip(run.start.until(run.end)) {
            let is_new = self.sb.in_main(blkaddr);
            let is_new = is_new.is_some_and(|n| bits::insert(&mut self.read, n));
            if !is_new {
                continue;
            }
            if let Err(slot) = dentry::in_block(block::nth(&buf, nth), entries) {
                self.notices.push(format!(
                    "directory {ino}, block {blkaddr}: bad entry in slot {slot}"
                ));
            }
        }
    }
}

/// Blocks read at once.
const CHUNK: u32 = 256;

/// Ciphertext as something that can stand in a path.
fn veiled(ciphertext: &[u8]) -> Box<[u8]> {
    let hex: String = ciphertext
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("<encrypted:{hex}>").into_bytes().into()
}
