// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which file an inode number was, where an entry does not tell the generation: f2fs's direct nodes
//! have their inode's number alone.
//!
//! Between two sightings of the same number with the same generation it was one file all along: a
//! generation does not come back.

use super::{FileId, HashMap};

struct Sighting {
    generation: u32,
    /// The file of what came since without a generation.
    since: Option<FileId>,
}

/// The last sighting of every inode number, in the order of time.
#[derive(Default)]
pub(super) struct Sightings {
    last: HashMap<u64, Sighting>,
}

impl Sightings {
    /// Notes a number with its generation. Returns the file that is now known to have the same.
    pub fn see(&mut self, inode: u64, generation: u32) -> Option<FileId> {
        let new = Sighting {
            generation,
            since: None,
        };
        let before = self.last.insert(inode, new)?;
        before.since.filter(|_| before.generation == generation)
    }

    /// The file of a number without generation; made by `new` at the first one since the last
    /// sighting. None if the number was never seen with one.
    pub fn since(&mut self, inode: u64, new: impl FnOnce() -> FileId) -> Option<FileId> {
        let last = self.last.get_mut(&inode)?;
        Some(*last.since.get_or_insert_with(new))
    }

    /// What was not decided: number, generation before, file.
    pub fn open(&self) -> impl Iterator<Item = (u64, u32, FileId)> + '_ {
        let open = |(&inode, last): (&u64, &Sighting)| Some((inode, last.generation, last.since?));
        self.last.iter().filter_map(open)
    }
}
