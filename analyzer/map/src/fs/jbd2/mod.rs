// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log of jbd2 in an image: the purpose for which each of its blocks was written.
//!
//! ```text
//! superblock │ descriptor, copies … │ revoke │ commit │ descriptor, copies … │ … │ fast commits
//!              └── one transaction, by its number ──┘
//! ```
//! The log is a ring in which a new transaction overwrites old ones from their beginning. So a run of copies is whole
//! if the block behind it belongs to the same transaction.

use std::collections::HashMap;

use crate::class::Kind;
use crate::extent::Extent;
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::map::Map;

mod be;
mod contents;
mod descriptor;
mod header;
mod log;
mod recovery;
mod revoke;
mod sums;
mod superblock;

use header::BlockType;
use log::{Log, SECTOR};
pub(super) use recovery::{Copied, Recovery, recover};

/// A copy in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// The transaction's number.
    pub tid: u32,
    /// First sector of its home.
    pub home_sector: u64,
    /// The kind of block, recognised by its contents; only for copies whose home is by now free or part of a regular
    /// file.
    pub kind: Option<Kind>,
}

/// The copies in a log, by the first sector of each copy.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    copies: HashMap<u64, Copy>,
}

impl Journal {
    /// Reads the journal that a map has located in an image; the image begins at `start_sector` of its disk. The result
    /// is empty if there is no journal, or none that can be read.
    pub fn read(image: &Image, map: &Map, start_sector: u64) -> Result<Journal> {
        let is_journal =
            |extent: &&Extent| matches!(extent.kind, Kind::Jbd2Superblock | Kind::JournalBlock);
        let runs = map.extents().iter().filter(is_journal).copied().collect();
        let mut journal = Journal::default();
        if let Some(mut log) = Log::open(image, runs, start_sector)? {
            let mut at = log.sb.s_first;
            while at < log.sb.end {
                at = journal.descriptor(&mut log, at, map)?;
            }
        }
        Ok(journal)
    }

    /// If the block `at` is a descriptor, adds its copies. Returns the next block to look at.
    fn descriptor(&mut self, log: &mut Log, at: u32, map: &Map) -> Result<u32> {
        let next = at.saturating_add(1);
        let Some(header) = log.header(at)? else {
            return Ok(next);
        };
        if header.h_blocktype != BlockType::Descriptor || log.load(at)?.is_none() {
            return Ok(next);
        }
        let tags = descriptor::tags(&log.sb, &log.block);
        let copies = u32::try_from(tags.len()).unwrap_or(u32::MAX);
        let after = log.place(at, copies.saturating_add(1));
        let is_whole = log.header(after)?;
        if is_whole.is_none_or(|h| h.h_sequence != header.h_sequence) {
            return Ok(next);
        }
        let per_block = u64::from(log.sb.s_blocksize) / SECTOR;
        for (nth, tag) in (1..).zip(tags) {
            let place = log.place(at, nth);
            let home = tag.t_blocknr.saturating_mul(per_block);
            let home_sector = home.saturating_add(log.start_sector);
            let Some(sector) = log.sector_of(place) else {
                continue;
            };
            let is_gone = |piece: Extent| matches!(piece.kind, Kind::Free | Kind::Regular);
            let kind = match map.pieces(home_sector, 1).next() {
                // The first bytes of an escaped block are not its own.
                Some(piece) if is_gone(piece) && !tag.is_escaped => {
                    let loaded = log.load(place)?;
                    loaded.and_then(|()| contents::kind(&log.block))
                }
                _ => None,
            };
            let copy = Copy {
                tid: header.h_sequence,
                home_sector,
                kind,
            };
            self.copies.insert(sector, copy);
        }
        // The copies may have wrapped around to the log's beginning.
        Ok(if after > at { after } else { log.sb.end })
    }

    /// Returns the copy at a sector of the disk.
    pub fn copy(&self, sector: u64) -> Option<&Copy> {
        self.copies.get(&sector)
    }

    /// Returns all copies, each with its first sector.
    pub fn copies(&self) -> impl Iterator<Item = (u64, &Copy)> {
        self.copies.iter().map(|(&sector, copy)| (sector, copy))
    }

    /// Translates the journal from a mapped device to the disk below. Copies that lie elsewhere are dropped.
    #[must_use]
    pub fn through(self, map: &Map) -> Journal {
        let down = |(sector, copy): (u64, Copy)| {
            let home_sector = map.down(copy.home_sector)?;
            let copy = Copy {
                home_sector,
                ..copy
            };
            Some((map.down(sector)?, copy))
        };
        self.copies.into_iter().filter_map(down).collect()
    }
}

impl FromIterator<(u64, Copy)> for Journal {
    /// Collects copies with their first sectors.
    fn from_iter<I: IntoIterator<Item = (u64, Copy)>>(copies: I) -> Journal {
        Journal {
            copies: copies.into_iter().collect(),
        }
    }
}
