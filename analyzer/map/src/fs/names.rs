// SPDX-License-Identifier: MIT OR Apache-2.0
//! The directory tree: collects every inode's names from directory entries.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Display;
use std::hash::Hash;

use crate::fs::progress::PartProgress;
use crate::map::{Inode, Name};

/// A name as it appears in paths.
pub type FileName = Box<[u8]>;

/// Access to the directories of a filesystem.
pub trait Directories {
    /// The type of inode numbers.
    type Ino: Copy + Eq + Hash + Display + Into<u64>;

    /// The end of the notice about a name that leads to no inode.
    const MISSING: &'static str;

    /// Returns true if an inode is a directory.
    fn contains(&self, ino: Self::Ino) -> bool;

    /// Returns the entries of a directory in their order, without `.` and `..`. It is called once for each directory.
    fn entries(&mut self, ino: Self::Ino) -> Vec<(Self::Ino, FileName)>;

    /// Stores a notice.
    fn note(&mut self, line: String);
}

/// Gives every inode that can be reached from the root its names. A directory gets one name only.
pub fn link<D: Directories>(
    mut directories: D,
    root: D::Ino,
    inodes: &mut HashMap<u64, Inode>,
    mut part: PartProgress,
) {
    match inodes.get_mut(&root.into()) {
        Some(inode) => inode.names.push(Name {
            parent: root.into(),
            name: [].into(),
        }),
        None => directories.note("there is no root directory, so no file has a name".into()),
    }
    let mut found = HashSet::from([root]);
    let mut queue: VecDeque<_> = [root]
        .into_iter()
        .filter(|&ino| directories.contains(ino))
        .collect();
    while let Some(parent) = queue.pop_front() {
        for (ino, name) in directories.entries(parent) {
            let is_directory = directories.contains(ino);
            if is_directory && !found.insert(ino) {
                directories.note(format!("inode {ino}: a directory with two names"));
            } else if let Some(child) = inodes.get_mut(&ino.into()) {
                child.names.push(Name {
                    parent: parent.into(),
                    name,
                });
                queue.extend(is_directory.then_some(ino));
            } else {
                directories.note(format!("inode {ino}: has a name, but {}", D::MISSING));
            }
        }
        part.add(1);
    }
}

/// The beginning of an encrypted name.
const ENCRYPTED: &[u8] = b"<encrypted:";

/// Returns true if a component of the path is an encrypted name, in the form that [`encrypted`] returns.
pub fn is_encrypted(path: &[u8]) -> bool {
    let is_one = |name: &[u8]| name.starts_with(ENCRYPTED) && name.ends_with(b">");
    path.split(|&b| b == b'/').any(is_one)
}

/// Returns an encrypted name in a form that can be part of a path; the ciphertext itself may hold `/`.
pub fn encrypted(ciphertext: &[u8]) -> FileName {
    let hex: String = ciphertext
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("<encrypted:{hex}>").into_bytes().into()
}
