// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows the tracepoints, and makes the entries of a bio when it is queued.

use std::collections::HashSet;
use std::ops::Range;

use foldhash::fast::RandomState;
use zerocopy::IntoBytes;

use super::bio::{Bio, Moment};
use super::builder::EntryBuilder;
use super::extents::Extents;
use super::owner::{Owner, Thread};
use super::paths::Paths;
use super::tells::{Fields, Tells, freed, owned, path, written};
use super::volume::{Piece, Volume};

/// The most files that are remembered.
const MANY_FILES: usize = 1 << 14;

/// This holds what the tracepoints have told of the files on one disk.
#[derive(Debug)]
pub struct Follower {
    /// The sectors that are traced.
    sectors: Range<u64>,
    volume: Option<Volume>,
    extents: Extents<Owner>,
    /// The threads that queued bios on a mapped device, by its sectors, until the bios arrive on the disk below.
    submitters: Extents<Thread>,
    /// The inodes that are known to be of regular files.
    regular: HashSet<u64, RandomState>,
    paths: Paths,
    builder: EntryBuilder,
}

impl Follower {
    /// Follows what happens in these sectors of a disk. The files are those of `volume`, in a kernel with such pages.
    pub fn new(
        disk_dev: u32,
        sectors: Range<u64>,
        volume: Option<Volume>,
        page_size: u64,
    ) -> Follower {
        Follower {
            sectors,
            volume,
            extents: Extents::default(),
            submitters: Extents::default(),
            regular: HashSet::default(),
            paths: Paths::default(),
            builder: EntryBuilder {
                disk_dev,
                page_size,
            },
        }
    }

    /// Returns the number of runs that were forgotten for lack of room.
    pub fn forgotten(&self) -> u64 {
        self.extents.forgotten
    }

    /// Takes an event of the filesystem.
    pub fn take(&mut self, tells: Tells, fields: &dyn Fields) {
        match tells {
            Tells::F2fsPage | Tells::ExtMapped => {
                let is_known = |owner: &Owner| {
                    tells == Tells::ExtMapped || owner.is_node || self.regular.contains(&owner.ino)
                };
                let owned = owned(tells, fields);
                if let Some((blocks, owner)) = owned.filter(|(_, owner)| is_known(owner)) {
                    self.extents.insert(blocks, owner);
                }
            }
            Tells::Regular => {
                if self.regular.len() > MANY_FILES {
                    self.regular.clear();
                }
                self.regular.extend(fields.number("ino"));
                if let Some((thread, ino, pos)) = written(fields) {
                    self.paths.settle(thread, ino, pos);
                }
            }
            Tells::Gone => {
                if let Some(ino) = fields.number("ino") {
                    self.regular.remove(&ino);
                    self.paths.remove(ino);
                }
            }
            Tells::ExtFreed => {
                if let Some(blocks) = freed(fields) {
                    self.extents.remove(&blocks);
                }
            }
            Tells::Path => {
                if let Some(told) = path(fields) {
                    self.paths.insert(told);
                }
            }
            Tells::PathOfSome => {
                if let Some((thread, told)) = fields.thread().zip(path(fields)) {
                    self.paths.hear(thread, told);
                }
            }
            Tells::Queue => {}
        }
    }

    /// Takes a bio that is queued, and passes its entries on. `thread` tells who queued it.
    ///
    /// # Errors
    /// Returns the error of `push`.
    pub fn queue<E>(
        &mut self,
        at: Moment,
        bio: &Bio,
        thread: impl FnOnce(&Bio) -> Thread,
        mut push: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let sectors = bio.sector..bio.sector.saturating_add(bio.sectors);
        let mut volume = self.volume.iter();
        if volume.any(|volume| volume.is_mapped && volume.dev == bio.dev) {
            // It arrives below as one bio or as several.
            self.submitters.insert(sectors, thread(bio));
            return Ok(());
        }
        let is_target =
            bio.sectors == 0 || bio.sector < self.sectors.end && sectors.end > self.sectors.start;
        if !is_target {
            return Ok(());
        }
        let volume = self.volume.clone();
        let pieces = volume.as_ref().map(|volume| volume.pieces(&sectors));
        let pieces = pieces.unwrap_or_default();
        let thread = self.submitter(&pieces).unwrap_or_else(|| thread(bio));
        push(self.builder.process(at, bio, &thread).as_bytes())?;
        let Some(volume) = volume.filter(|_| bio.is_data()) else {
            return Ok(());
        };
        for piece in pieces {
            for (run, owner) in self.extents.of(&volume.blocks(&piece)) {
                let path = self.paths.get(owner.ino).filter(|_| owner.ino != 0);
                push(&self.builder.file(at, &volume, &piece, &run, owner, path))?;
                // Each write of such a page has its own event.
                if owner.is_node {
                    self.extents.remove(&run);
                }
            }
        }
        Ok(())
    }

    /// Returns the thread that queued, on the mapped device, what arrives here.
    fn submitter(&mut self, pieces: &[Piece]) -> Option<Thread> {
        let mut first = None;
        for piece in pieces {
            let sectors = piece.sectors();
            let known = self.submitters.of(&sectors).into_iter().next();
            first = first.or(known.map(|(_, thread)| thread));
            self.submitters.remove(&sectors);
        }
        first
    }
}
