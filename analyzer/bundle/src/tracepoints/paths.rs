// SPDX-License-Identifier: MIT OR Apache-2.0
//! The paths of files, as events tell them when a file is written. Such an event has the number of the inode, but no device. If
//! several filesystems may tell it, the same thread's next event shows whether the inode is the traced one's: it has the device, and
//! only the traced one's are listened to.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;

/// The most files that are remembered, and the most threads.
const MANY: usize = 1 << 14;

/// A path that was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub ino: u64,
    /// The bytes of the file that are written.
    pub bytes: Range<u64>,
    pub path: Vec<u8>,
}

/// The latest paths.
#[derive(Debug, Default)]
pub(super) struct Paths {
    known: HashMap<u64, Vec<u8>, RandomState>,
    /// What each thread told last, until it is settled whose inode it is.
    open: HashMap<u32, Told, RandomState>,
}

impl Paths {
    /// Notes a path of the traced filesystem.
    pub fn insert(&mut self, told: Told) {
        if self.known.len() > MANY {
            self.known.clear();
        }
        self.known.insert(told.ino, told.path);
    }

    /// Notes what a thread told, which may be of another filesystem.
    pub fn hear(&mut self, thread: u32, told: Told) {
        if self.open.len() > MANY {
            self.open.clear();
        }
        self.open.insert(thread, told);
    }

    /// The thread writes at `pos` in an inode of the traced filesystem.
    pub fn settle(&mut self, thread: u32, ino: u64, pos: u64) {
        if let Some(told) = self.open.remove(&thread)
            && told.ino == ino
            && told.bytes.contains(&pos)
        {
            self.insert(told);
        }
    }

    pub fn get(&self, ino: u64) -> Option<&[u8]> {
        self.known.get(&ino).map(Vec::as_slice)
    }

    pub fn remove(&mut self, ino: u64) {
        self.known.remove(&ino);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(ino: u64, bytes: Range<u64>, path: &str) -> Told {
        let path = path.into();
        Told { ino, bytes, path }
    }

    #[test]
    fn a_path_of_another_filesystem_names_no_file() {
        let mut paths = Paths::default();
        paths.hear(7, told(12, 0..100, "/theirs"));
        paths.hear(8, told(12, 0..100, "/ours"));
        paths.settle(8, 12, 50);
        assert_eq!(paths.get(12), Some(&b"/ours"[..]));
        // What came next from this thread was of another inode, or of another place.
        paths.settle(7, 13, 0);
        assert_eq!(paths.get(13), None);
        paths.settle(7, 12, 0);
        assert_eq!(paths.get(12), Some(&b"/ours"[..]));
        paths.hear(7, told(14, 100..200, "/theirs"));
        paths.settle(7, 14, 0);
        assert_eq!(paths.get(14), None);
        paths.remove(12);
        assert_eq!(paths.get(12), None);
    }
}
