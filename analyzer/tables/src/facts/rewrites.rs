// SPDX-License-Identifier: MIT OR Apache-2.0
//! Temporal locality: finds writes to sectors that were written before in the trace.
//!
//! Most writes are of whole blocks, so one note stands for all sectors of a block; a block that is written in part has a
//! note for each sector.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use mostrace_map::class::Kind;

use mostrace_trace::attribute::{FileId, Op, Request, Row};
use mostrace_trace::origins::Base;
use mostrace_trace::tally::Tally;

/// Sectors of a block, which is a page: the unit that SQLite and the filesystems write.
const BLOCK: u64 = 8;
/// Blocks of a chunk; its notes are adjacent in memory, because neighbours are written together.
const CHUNK: u64 = 8;
/// Number of the most written ranges that are kept.
const HOTTEST: usize = 10;
/// The most chunks that are tracked, 64 GiB of blocks: a trace may come from a stranger.
const MOST_CHUNKS: usize = 1 << 21;
/// The most blocks that are tracked sector by sector, 4 GiB of them.
const MOST_SPLIT: usize = 1 << 20;
/// The longest write that is tracked, bytes. The kernel's requests are far smaller.
const MOST_BYTES: u32 = 1 << 28;

/// The writes to a sector, or to each sector of a block.
#[derive(Clone, Copy, Default)]
struct Written {
    /// Time of the last write, ns.
    last_ns: u64,
    /// Number of writes.
    writes: u32,
    /// The file of the last write.
    file: FileId,
    kind: Option<Kind>,
}

impl Written {
    /// Notes a write; returns the time since the one before, ns.
    fn again(&mut self, time_ns: u64, row: &Row) -> Option<u64> {
        let since = (self.writes > 0).then(|| time_ns.saturating_sub(self.last_ns));
        *self = Written {
            last_ns: time_ns,
            writes: self.writes.saturating_add(1),
            file: row.file,
            kind: row.kind,
        };
        since
    }
}

/// The notes of a chunk's blocks, stored field by field to save memory.
#[derive(Clone, Copy, Default)]
struct Chunk {
    last_ns: [u64; CHUNK as usize],
    writes: [u32; CHUNK as usize],
    file: [FileId; CHUNK as usize],
    kind: [Option<Kind>; CHUNK as usize],
    /// A bit for each block whose sectors have their own notes.
    split: u8,
}

impl Chunk {
    fn get(&self, at: usize) -> Written {
        Written {
            last_ns: self.last_ns[at],
            writes: self.writes[at],
            file: self.file[at],
            kind: self.kind[at],
        }
    }

    fn set(&mut self, at: usize, written: Written) {
        self.last_ns[at] = written.last_ns;
        self.writes[at] = written.writes;
        (self.file[at], self.kind[at]) = (written.file, written.kind);
    }

    fn is_split(&self, at: usize) -> bool {
        self.split >> at & 1 != 0
    }

    /// Returns true if a part of it may have been written more than once.
    fn may_be_hot(&self) -> bool {
        self.split != 0 || self.writes.iter().any(|&writes| writes > 1)
    }
}

type Places<T> = HashMap<(u32, u64), T, foldhash::fast::RandomState>;
type Sectors = [Written; BLOCK as usize];

/// All sectors that were written. Memory grows with the blocks, not with the writes.
#[derive(Default)]
pub(crate) struct Rewrites {
    /// Indices of chunks, by device and number of the chunk.
    places: Places<u32>,
    chunks: Vec<Chunk>,
    /// The sectors of blocks that were written in part, by device and number of the block.
    split: Places<Sectors>,
    missed: u64,
}

/// The part of a write that was written before.
#[derive(Clone, Copy, Default)]
struct Before {
    sectors: u64,
    /// Time since the first of these sectors was written, ns.
    since_ns: Option<u64>,
}

impl Before {
    fn add(&mut self, sectors: u64, since_ns: Option<u64>) {
        if since_ns.is_some() {
            self.sectors.tally(sectors);
            self.since_ns = self.since_ns.or(since_ns);
        }
    }
}

/// A range of adjacent sectors that were written equally often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hot {
    /// Device number, major << 20 | minor.
    pub device: u32,
    /// First sector on the whole disk.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// Number of writes to each of the sectors.
    pub writes: u32,
    /// The file of their last write.
    pub file: FileId,
    /// The kind that they held then.
    pub kind: Option<Kind>,
}

/// The sectors that were written repeatedly.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locality {
    /// Number of rows that were not tracked.
    pub missed: u64,
    /// The most written ranges.
    pub hottest: Vec<Hot>,
}

impl Locality {
    /// Renumbers files to the numbers that they have among all recordings.
    pub(super) fn moved(mut self, base: Base) -> Locality {
        for hot in &mut self.hottest {
            hot.file = base.file(hot.file);
        }
        self
    }

    /// Adds the ranges of another recording, which is of another disk or another time.
    pub(super) fn add(&mut self, other: Locality) {
        self.missed.tally(other.missed);
        self.hottest.extend(other.hottest);
        self.hottest.sort_by_key(|hot| Reverse(hot.writes));
        self.hottest.truncate(HOTTEST);
    }
}

impl Hot {
    fn new(device: u32, sector: u64, sectors: u64, written: Written) -> Hot {
        Hot {
            device,
            sector,
            sectors,
            writes: written.writes,
            file: written.file,
            kind: written.kind,
        }
    }

    fn goes_on_in(&self, next: &Hot) -> bool {
        let answer = |hot: &Hot| (hot.device, hot.writes, hot.file, hot.kind);
        let end = self.sector.checked_add(self.sectors);
        answer(self) == answer(next) && end == Some(next.sector)
    }
}

impl Rewrites {
    /// Notes a row. Returns how many of its bytes were written before (None if the row is not tracked) and the time since
    /// the first of them was written, ns.
    pub fn see(&mut self, request: &Request, row: &Row) -> (Option<u32>, Option<u64>) {
        if request.op != Op::Write || row.bytes == 0 {
            return (Some(0), None);
        }
        let is_full = self.chunks.len() >= MOST_CHUNKS || self.split.len() >= MOST_SPLIT;
        if row.bytes > MOST_BYTES || is_full {
            self.missed.tally(1);
            return (None, None);
        }
        let mut before = Before::default();
        let length = u64::from(row.bytes).div_ceil(512);
        let end = row.sector.saturating_add(length);
        let mut sector = row.sector;
        while sector < end {
            let number = sector / (BLOCK * CHUNK);
            let next = number.saturating_add(1);
            let chunk_end = next.saturating_mul(BLOCK * CHUNK).min(end);
            let place = self.chunk(request.device, number);
            while sector < chunk_end {
                let next = (sector / BLOCK).saturating_add(1);
                let next = next.saturating_mul(BLOCK).min(end);
                self.block(place, sector..next, request, row, &mut before);
                sector = next;
            }
        }
        let rewritten = before.sectors.saturating_mul(512).min(u64::from(row.bytes));
        (u32::try_from(rewritten).ok(), before.since_ns)
    }

    /// Notes sectors of one block.
    #[inline]
    fn block(
        &mut self,
        place: u32,
        sectors: Range<u64>,
        request: &Request,
        row: &Row,
        before: &mut Before,
    ) {
        let chunk = &mut self.chunks[place as usize];
        let at = (sectors.start / BLOCK % CHUNK) as usize;
        let length = sectors.end.saturating_sub(sectors.start);
        if length == BLOCK && !chunk.is_split(at) {
            let mut written = chunk.get(at);
            before.add(length, written.again(request.time_ns, row));
            chunk.set(at, written);
            return;
        }
        chunk.split |= 1 << at;
        let key = (request.device, sectors.start / BLOCK);
        let alike = [chunk.get(at); BLOCK as usize];
        let notes = self.split.entry(key).or_insert(alike);
        for sector in sectors {
            let written = &mut notes[(sector % BLOCK) as usize];
            before.add(1, written.again(request.time_ns, row));
        }
    }

    /// Returns the index of a chunk.
    fn chunk(&mut self, device: u32, number: u64) -> u32 {
        *self.places.entry((device, number)).or_insert_with(|| {
            let place = self.chunks.len() as u32;
            self.chunks.push(Chunk::default());
            place
        })
    }

    /// Returns the result.
    pub fn finish(self) -> Locality {
        Locality {
            missed: self.missed,
            hottest: self.hottest(HOTTEST),
        }
    }

    /// Returns the ranges that were written most often, at most `most` of them.
    fn hottest(&self, most: usize) -> Vec<Hot> {
        let mut places: Vec<((u32, u64), u32)> = self
            .places
            .iter()
            .map(|(&key, &place)| (key, place))
            .filter(|&(_, place)| self.chunks[place as usize].may_be_hot())
            .collect();
        places.sort_unstable();
        let mut ranges: Vec<Hot> = Vec::new();
        for ((device, number), place) in places {
            let chunk = &self.chunks[place as usize];
            for (at, block) in (0..CHUNK as usize).zip(number.saturating_mul(CHUNK)..) {
                self.hot_of(chunk, at, device, block, |hot| {
                    match ranges.last_mut().filter(|range| range.goes_on_in(&hot)) {
                        Some(range) => range.sectors.tally(hot.sectors),
                        None => ranges.push(hot),
                    }
                });
            }
        }
        ranges.sort_by_key(|r| (Reverse((r.writes, r.sectors)), r.device, r.sector));
        ranges.truncate(most);
        ranges
    }

    /// Calls `see` for each part of a block that was written more than once.
    fn hot_of(&self, chunk: &Chunk, at: usize, device: u32, block: u64, mut see: impl FnMut(Hot)) {
        let mut hot = |sector: u64, sectors: u64, written: Written| {
            if written.writes > 1 {
                see(Hot::new(device, sector, sectors, written));
            }
        };
        let first = block.saturating_mul(BLOCK);
        match self.split.get(&(device, block)) {
            Some(notes) => (0..)
                .zip(notes)
                .for_each(|(at, written)| hot(first.saturating_add(at), 1, *written)),
            None => hot(first, BLOCK, chunk.get(at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(
        rewrites: &mut Rewrites,
        time_ns: u64,
        sector: u64,
        bytes: u32,
    ) -> (Option<u32>, Option<u64>) {
        let request = Request {
            time_ns,
            op: Op::Write,
            ..Request::default()
        };
        let row = Row {
            sector,
            bytes,
            ..Row::default()
        };
        rewrites.see(&request, &row)
    }

    fn hot(sector: u64, sectors: u64, writes: u32) -> Hot {
        let written = Written {
            writes,
            ..Written::default()
        };
        Hot::new(0, sector, sectors, written)
    }

    #[test]
    fn what_is_written_again_is_told() {
        let mut rewrites = Rewrites::default();
        let mut write = |time_ns, sector, bytes| write(&mut rewrites, time_ns, sector, bytes);
        assert_eq!(write(10, 0, 4096), (Some(0), None));
        assert_eq!(write(15, 8, 8192), (Some(0), None));
        assert_eq!(write(30, 0, 8192), (Some(8192), Some(20)));
        assert_eq!(write(40, 16, 16384), (Some(4096), Some(25)));
        assert_eq!(write(50, 16, 512), (Some(512), Some(10)));
        assert_eq!(write(60, 16, MOST_BYTES + 512), (None, None));
        let hottest = rewrites.hottest(9);
        assert_eq!(hottest, [hot(16, 1, 3), hot(0, 16, 2), hot(17, 7, 2)]);
    }

    /// Adjacent sectors are not each other's rewrites, and each has its own time.
    #[test]
    fn a_neighbour_in_the_same_block_is_no_rewrite() {
        let mut rewrites = Rewrites::default();
        let mut write = |time_ns, sector, bytes| write(&mut rewrites, time_ns, sector, bytes);
        for sector in 0..100 {
            assert_eq!(write(10 + sector, sector, 512), (Some(0), None), "{sector}");
        }
        assert_eq!(write(200, 3, 512), (Some(512), Some(187)));
        // The write begins within a block of which three sectors were written: five sectors are new.
        assert_eq!(write(300, 97, 4096), (Some(3 * 512), Some(193)));
        // The whole block is written; one of its sectors was written since.
        assert_eq!(write(400, 0, 4096), (Some(4096), Some(390)));
        assert_eq!(write(450, 3, 512), (Some(512), Some(50)));
        assert_eq!(rewrites.hottest(2), [hot(3, 1, 4), hot(4, 4, 2)]);
    }

    /// A recording may name any sector.
    #[test]
    fn the_last_sectors_that_there_can_be_are_told() {
        let mut rewrites = Rewrites::default();
        let mut write = |time_ns| write(&mut rewrites, time_ns, u64::MAX - 3, 4096);
        assert_eq!(write(10), (Some(0), None));
        assert_eq!(write(30), (Some(3 * 512), Some(20)));
        assert_eq!(rewrites.hottest(9), [hot(u64::MAX - 3, 3, 2)]);
    }
}
