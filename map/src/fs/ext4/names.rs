// SPDX-License-Identifier: MIT OR Apache-2.0
//! The directory tree: every inode's names, from the directories' own blocks.
//!
//! debugfs's `ls` prints names as they are, newlines and all, so it cannot be read exactly.

use std::collections::{HashMap, HashSet, VecDeque};

use super::block_list::Run;
use super::dirent;
use super::numbers::{EXT4_ROOT_INO, FsBlock, Ino};
use super::superblock::SuperBlock;
use crate::fs::image::Image;
use crate::fs::notices::Notices;
use crate::fs::progress::Part;
use crate::map::{Inode, Name};

/// Where a directory keeps its entries.
#[derive(Debug, Default)]
pub struct Directory {
    /// Its blocks.
    pub runs: Vec<Run>,
    /// The areas inside its inode (inline_data).
    pub inline: Vec<Vec<u8>>,
    /// Its names are ciphertext. They are given as `<encrypted:HEX>`, as they may hold `/`.
    pub encrypted: bool,
}

/// Gives every inode that the root leads to its names. A directory gets one name only.
pub fn link(
    image: &Image,
    sb: &SuperBlock,
    directories: &HashMap<Ino, Directory>,
    inodes: &mut HashMap<u64, Inode>,
    notices: &mut Notices,
    mut part: Part,
) {
    let root = u64::from(EXT4_ROOT_INO);
    let mut tree = Tree {
        image,
        sb,
        notices,
        read: HashSet::new(),
    };
    let mut found = HashSet::from([EXT4_ROOT_INO]);
    let mut queue = VecDeque::from([EXT4_ROOT_INO]);
    match inodes.get_mut(&root) {
        Some(inode) => inode.names.push(Name {
            parent: root,
            name: [].into(),
        }),
        None => tree
            .notices
            .push("there is no root directory, no file has a name"),
    }
    while let Some(parent) = queue.pop_front() {
        let Some(directory) = directories.get(&parent) else {
            continue;
        };
        for (inode, name) in tree.entries(parent, directory) {
            let is_directory = directories.contains_key(&inode);
            if is_directory && !found.insert(inode) {
                tree.notices
                    .push(format!("inode {inode}: a directory with two names"));
            } else if let Some(child) = inodes.get_mut(&inode.into()) {
                child.names.push(Name {
                    parent: parent.into(),
                    name,
                });
                queue.extend(is_directory.then_some(inode));
            } else {
                tree.notices
                    .push(format!("inode {inode}: has a name, but is not in use"));
            }
        }
        part.add(1);
    }
}

struct Tree<'a> {
    image: &'a Image,
    sb: &'a SuperBlock,
    notices: &'a mut Notices,
    /// Directory blocks read so far: a damaged image may give one to many directories.
    read: HashSet<FsBlock>,
}

impl Tree<'_> {
    fn entries(&mut self, inode: Ino, directory: &Directory) -> Vec<(Ino, Box<[u8]>)> {
        let mut entries = Vec::new();
        for (nth, area) in directory.inline.iter().enumerate() {
            self.parse(
                area,
                format_args!("inline area {nth}"),
                inode,
                directory,
                &mut entries,
            );
        }
        let blocks = directory.runs.iter().flat_map(|run| {
            let at = |nth| (run.logical.plus(nth), run.block.plus(nth));
            (0..run.blocks).map(at)
        });
        for (logical, block) in blocks {
            if !self.read.insert(block) {
                continue;
            }
            let at = format!("inode {inode}, directory block {logical}");
            match self.sb.read_block(self.image, block, at) {
                Ok(area) => {
                    let at = format_args!("block {logical}");
                    self.parse(&area, at, inode, directory, &mut entries);
                }
                // The blocks that follow are past the end of the image too.
                Err(error) => return (self.notices.push(error.to_string()), entries).1,
            }
        }
        entries
    }

    fn parse(
        &mut self,
        area: &[u8],
        at: std::fmt::Arguments,
        inode: Ino,
        directory: &Directory,
        entries: &mut Vec<(Ino, Box<[u8]>)>,
    ) {
        let parsed = dirent::parse(area, |entry| {
            let name = if directory.encrypted {
                veiled(entry.name)
            } else {
                entry.name.into()
            };
            entries.push((Ino(entry.inode), name));
        });
        if let Err(offset) = parsed {
            self.notices.push(format!(
                "inode {inode}: directory {at}: bad entry at byte {offset}"
            ));
        }
    }
}

/// Ciphertext as something that can stand in a path.
fn veiled(ciphertext: &[u8]) -> Box<[u8]> {
    let hex: String = ciphertext
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("<encrypted:{hex}>").into_bytes().into()
}
