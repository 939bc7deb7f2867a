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
mod superblock;

use header::{BlockType, Header};
use superblock::Superblock;

const SECTOR: u64 = 512;
/// The largest block size of a journal, bytes.
const LARGEST_BLOCK: usize = 65536;

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
    ///
    /// # Errors
    /// Returns an error if the image cannot be read.
    pub fn read(image: &Image, map: &Map, start_sector: u64) -> Result<Journal> {
        let is_journal =
            |extent: &&Extent| matches!(extent.kind, Kind::Jbd2Superblock | Kind::JournalBlock);
        let mut runs: Vec<Extent> = map.extents().iter().filter(is_journal).copied().collect();
        runs.sort_by_key(|run| run.file_offset);
        let Some(first) = runs.first() else {
            return Ok(Journal::default());
        };
        let mut log = Log {
            image,
            start_sector,
            runs: &runs,
            block: vec![0; LARGEST_BLOCK],
        };
        let room = usize::try_from(first.sectors.saturating_mul(SECTOR)).unwrap_or(usize::MAX);
        log.block.truncate(room.min(LARGEST_BLOCK));
        let begin = log.byte_of(first.sector);
        image.read_into(&mut log.block, begin, "journal superblock")?;
        let Some(sb) = Superblock::read(&log.block) else {
            return Ok(Journal::default());
        };
        // The size was checked to be at most LARGEST_BLOCK.
        let len = usize::try_from(sb.s_blocksize).unwrap_or(LARGEST_BLOCK);
        log.block.resize(len, 0);
        let mut journal = Journal::default();
        let mut at = sb.s_first;
        while at < sb.end {
            at = log.descriptor(&sb, at, map, &mut journal)?;
        }
        Ok(journal)
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

/// Access to the blocks of the log.
struct Log<'a> {
    image: &'a Image,
    start_sector: u64,
    runs: &'a [Extent],
    /// The block that was read last.
    block: Vec<u8>,
}

impl Log<'_> {
    /// If the block `at` is a descriptor, stores its copies in `journal`. Returns the next block to look at.
    fn descriptor(
        &mut self,
        sb: &Superblock,
        at: u32,
        map: &Map,
        journal: &mut Journal,
    ) -> Result<u32> {
        let next = at.saturating_add(1);
        let Some(header) = self.header(sb, at)? else {
            return Ok(next);
        };
        if header.h_blocktype != BlockType::Descriptor || self.load(sb, at)?.is_none() {
            return Ok(next);
        }
        let tags = descriptor::tags(sb, &self.block);
        let copies = u32::try_from(tags.len()).unwrap_or(u32::MAX);
        let after = Self::place(sb, at, copies.saturating_add(1));
        let same = |h: Header| h.h_sequence == header.h_sequence;
        if !self.header(sb, after)?.is_some_and(same) {
            return Ok(next);
        }
        for (nth, tag) in (1..).zip(tags) {
            let place = Self::place(sb, at, nth);
            let per_block = u64::from(sb.s_blocksize).checked_div(SECTOR).unwrap_or(1);
            let home = tag.t_blocknr.saturating_mul(per_block);
            let home_sector = home.saturating_add(self.start_sector);
            let Some(sector) = self.sector_of(sb, place) else {
                continue;
            };
            let is_gone = |piece: Extent| matches!(piece.kind, Kind::Free | Kind::Regular);
            let kind = match map.pieces(home_sector, 1).next() {
                // The first bytes of an escaped block are not its own.
                Some(piece) if is_gone(piece) && !tag.is_escaped => {
                    let loaded = self.load(sb, place)?;
                    loaded.and_then(|()| contents::kind(&self.block))
                }
                _ => None,
            };
            let copy = Copy {
                tid: header.h_sequence,
                home_sector,
                kind,
            };
            journal.copies.insert(sector, copy);
        }
        // The copies may have wrapped around to the log's beginning.
        Ok(if after > at { after } else { sb.end })
    }

    /// Returns the block that lies `behind` blocks behind `at` in the ring.
    fn place(sb: &Superblock, at: u32, behind: u32) -> u32 {
        let round = sb.end.saturating_sub(sb.s_first);
        let from_first = at.saturating_sub(sb.s_first).saturating_add(behind);
        let within = from_first.checked_rem(round).unwrap_or(0);
        sb.s_first.saturating_add(within)
    }

    /// Reads the header of a block; None if it has none or is not part of the file.
    fn header(&self, sb: &Superblock, at: u32) -> Result<Option<Header>> {
        let Some(sector) = self.sector_of(sb, at) else {
            return Ok(None);
        };
        let mut head = [0; header::LEN];
        let offset = self.byte_of(sector);
        self.image.read_into(&mut head, offset, "journal")?;
        Ok(Header::read(&head))
    }

    /// Reads a block into `self.block`; None if it is not part of the file.
    fn load(&mut self, sb: &Superblock, at: u32) -> Result<Option<()>> {
        let Some(sector) = self.sector_of(sb, at) else {
            return Ok(None);
        };
        let offset = self.byte_of(sector);
        self.image.read_into(&mut self.block, offset, "journal")?;
        Ok(Some(()))
    }

    /// Returns the sector of the disk at which a block of the journal's file lies.
    fn sector_of(&self, sb: &Superblock, at: u32) -> Option<u64> {
        let offset = u64::from(at).checked_mul(sb.s_blocksize.into())?;
        let next = self
            .runs
            .partition_point(|run| run.file_offset.is_some_and(|from| from <= offset));
        let run = self.runs.get(next.checked_sub(1)?)?;
        let within = offset.checked_sub(run.file_offset?)?.checked_div(SECTOR)?;
        (within < run.sectors).then(|| run.sector.saturating_add(within))
    }

    /// Returns the byte offset in the image of a sector of the disk.
    fn byte_of(&self, sector: u64) -> u64 {
        let within = sector.saturating_sub(self.start_sector);
        within.saturating_mul(SECTOR)
    }
}
