// SPDX-License-Identifier: MIT OR Apache-2.0
//! The paths of files, for as long as they may be asked for.

use std::collections::HashSet;

use crate::attribute::{File, FileId, HashMap};

/// Paths by inode and generation.
type Recent = HashMap<(u64, u32), Box<[u8]>>;

/// The paths of files that were seen.
#[derive(Default)]
pub struct Paths {
    /// The last generation of each inode with a known path, and that path.
    last: HashMap<u64, (u32, Box<[u8]>)>,
    /// Paths of every generation, of this segment and of the one before: a journal may be created anew for each transaction.
    recent: [Recent; 2],
    /// Files whose paths were already taken.
    seen: HashSet<FileId>,
}

impl Paths {
    /// Takes a file's path, if it is the first time that the file is seen.
    pub fn learn<'f>(&mut self, id: FileId, file: impl FnOnce() -> &'f File) {
        if !self.seen.insert(id) {
            return;
        }
        let file = file();
        if let (Some(inode), Some(generation), Some(path)) =
            (file.inode, file.generation, &file.path)
        {
            self.last.insert(inode, (generation, path.clone()));
            self.recent[0].insert((inode, generation), path.clone());
        }
    }

    /// Returns the path of an inode.
    pub fn of(&self, inode: u64, generation: Option<u32>) -> Option<&[u8]> {
        let last = self.last.get(&inode);
        let last = last.filter(|(of, _)| Some(*of) == generation);
        let recent = |generation| {
            let mut recent = self.recent.iter();
            recent.find_map(|of| of.get(&(inode, generation)))
        };
        let path = last.map(|(_, path)| path).or_else(|| recent(generation?));
        path.map(|path| &**path)
    }

    /// Forgets all files: their numbers begin anew.
    pub fn begin(&mut self) {
        *self = Paths::default();
    }

    /// Forgets what only the segment before the last had.
    pub fn end_segment(&mut self) {
        self.recent.swap(0, 1);
        self.recent[0].clear();
    }
}
