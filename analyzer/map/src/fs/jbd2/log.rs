// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the blocks of the log, wherever the journal's file lies.

use super::header::{self, Header};
use super::superblock::Superblock;
use crate::extent::Extent;
use crate::fs::error::Result;
use crate::fs::image::Image;

pub const SECTOR: u64 = 512;
/// The largest block size of a journal, bytes.
const LARGEST_BLOCK: usize = 65536;

/// Access to the blocks of the log.
pub struct Log<'a> {
    pub sb: Superblock,
    pub start_sector: u64,
    /// The block that was read last.
    pub block: Vec<u8>,
    image: &'a Image,
    /// The parts of the journal's file, in its order.
    runs: Vec<Extent>,
}

impl<'a> Log<'a> {
    /// Opens the log whose file lies in `runs`; the image begins at `start_sector` of its disk. None if there is no superblock that
    /// describes a log.
    pub fn open(
        image: &'a Image,
        mut runs: Vec<Extent>,
        start_sector: u64,
    ) -> Result<Option<Log<'a>>> {
        runs.sort_by_key(|run| run.file_offset);
        let Some(first) = runs.first() else {
            return Ok(None);
        };
        let room = usize::try_from(first.sectors.saturating_mul(SECTOR)).unwrap_or(usize::MAX);
        let mut block = vec![0; room.min(LARGEST_BLOCK)];
        let begin = byte_of(first.sector, start_sector);
        image.read_into(&mut block, begin, "journal superblock")?;
        let Some(sb) = Superblock::read(&block) else {
            return Ok(None);
        };
        // The size was checked to be at most LARGEST_BLOCK.
        let len = usize::try_from(sb.s_blocksize).unwrap_or(LARGEST_BLOCK);
        block.resize(len, 0);
        Ok(Some(Log {
            sb,
            start_sector,
            block,
            image,
            runs,
        }))
    }

    /// Returns the block that lies `behind` blocks behind `at` in the ring.
    pub fn place(&self, at: u32, behind: u32) -> u32 {
        let round = self.sb.end.saturating_sub(self.sb.s_first);
        let from_first = at.saturating_sub(self.sb.s_first).saturating_add(behind);
        let within = from_first.checked_rem(round).unwrap_or(0);
        self.sb.s_first.saturating_add(within)
    }

    /// Reads the header of a block; None if it has none or is not part of the file.
    pub fn header(&self, at: u32) -> Result<Option<Header>> {
        let Some(offset) = self.byte_at(at) else {
            return Ok(None);
        };
        let mut head = [0; header::LEN];
        self.image.read_into(&mut head, offset, "journal")?;
        Ok(Header::read(&head))
    }

    /// Reads a block into `self.block`; None if it is not part of the file.
    pub fn load(&mut self, at: u32) -> Result<Option<()>> {
        let Some(offset) = self.byte_at(at) else {
            return Ok(None);
        };
        self.image.read_into(&mut self.block, offset, "journal")?;
        Ok(Some(()))
    }

    /// Returns the sector of the disk at which a block of the journal's file lies.
    pub fn sector_of(&self, at: u32) -> Option<u64> {
        let offset = u64::from(at).checked_mul(self.sb.s_blocksize.into())?;
        let next = self
            .runs
            .partition_point(|run| run.file_offset.is_some_and(|from| from <= offset));
        let run = self.runs.get(next.checked_sub(1)?)?;
        let within = offset.checked_sub(run.file_offset?)?.checked_div(SECTOR)?;
        (within < run.sectors).then(|| run.sector.saturating_add(within))
    }

    /// Returns the byte of the image at which a block of the journal's file lies.
    pub fn byte_at(&self, at: u32) -> Option<u64> {
        Some(byte_of(self.sector_of(at)?, self.start_sector))
    }
}

/// Returns the byte offset in the image of a sector of the disk.
fn byte_of(sector: u64, start_sector: u64) -> u64 {
    let within = sector.saturating_sub(start_sector);
    within.saturating_mul(SECTOR)
}
