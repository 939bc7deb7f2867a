// SPDX-License-Identifier: MIT OR Apache-2.0
//! Identifies the file of an inode number where an entry lacks the generation: f2fs's direct nodes have only their inode's
//! number.
//!
//! Between two sightings of a number with the same generation it was one file all along, because a generation is not reused.

use super::{FileId, HashMap};

struct Sighting {
    generation: u32,
    /// The file of entries without a generation since this sighting.
    since: Option<FileId>,
}

/// The last sighting of every inode number.
#[derive(Default)]
pub(super) struct Sightings {
    last: HashMap<u64, Sighting>,
}

impl Sightings {
    /// Notes a number with its generation. Returns the file of the entries in between if this proves that they have the same
    /// generation.
    pub fn see(&mut self, inode: u64, generation: u32) -> Option<FileId> {
        let new = Sighting {
            generation,
            since: None,
        };
        let before = self.last.insert(inode, new)?;
        before.since.filter(|_| before.generation == generation)
    }

    /// Returns the file of a number without generation; `new` makes it at the first entry since the last sighting. None if
    /// the number was never seen with a generation.
    pub fn since(&mut self, inode: u64, new: impl FnOnce() -> FileId) -> Option<FileId> {
        let last = self.last.get_mut(&inode)?;
        Some(*last.since.get_or_insert_with(new))
    }

    /// Returns the undecided ones: number, generation before, file.
    pub fn open(&self) -> impl Iterator<Item = (u64, u32, FileId)> + '_ {
        let open = |(&inode, last): (&u64, &Sighting)| Some((inode, last.generation, last.since?));
        self.last.iter().filter_map(open)
    }
}
