// SPDX-License-Identifier: MIT OR Apache-2.0
//! Temporal locality: which writes go to blocks that were written before in the trace.

use std::cmp::Reverse;
use std::collections::HashMap;

use mostrace_map::class::Kind;

use crate::attribute::{FileId, Op, Request, Row};

/// Sectors of a block: a page, the unit that SQLite and the filesystems write in.
const BLOCK: u64 = 8;
/// Blocks of a chunk, which stand side by side: neighbours are written together.
const CHUNK: u64 = 8;
/// The ranges that are kept of what was written again and again.
const HOTTEST: usize = 10;
/// Chunks that are followed, 64 GiB of blocks: a trace may come from a stranger.
const MOST_CHUNKS: usize = 1 << 21;
/// Bytes of a write that is followed. The kernel's requests are far smaller.
const MOST_BYTES: u32 = 1 << 28;

/// For each block its last write, ns, how many there were, and what the last one was of.
#[derive(Clone, Copy, Default)]
struct Chunk {
    last_ns: [u64; CHUNK as usize],
    writes: [u32; CHUNK as usize],
    file: [FileId; CHUNK as usize],
    kind: [Option<Kind>; CHUNK as usize],
}

/// Every block that was written. Memory grows with the blocks, not with the writes.
#[derive(Default)]
pub(crate) struct Rewrites {
    /// By device and number of the chunk.
    places: HashMap<(u32, u64), u32, foldhash::fast::RandomState>,
    chunks: Vec<Chunk>,
    missed: u64,
}

/// A range of blocks that were written equally often and followed one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hot {
    /// major << 20 | minor.
    pub device: u32,
    /// First sector, whole disk.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// How often each of its blocks was written.
    pub writes: u32,
    /// The file that they were written for last.
    pub file: FileId,
    /// What they held then.
    pub kind: Option<Kind>,
}

/// What was written again and again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locality {
    /// Rows that were not followed.
    pub missed: u64,
    /// The most written ranges.
    pub hottest: Vec<Hot>,
}

impl Hot {
    fn goes_on_in(&self, next: &Hot) -> bool {
        let answer = |hot: &Hot| (hot.device, hot.writes, hot.file, hot.kind);
        answer(self) == answer(next) && self.sector + self.sectors == next.sector
    }
}

impl Rewrites {
    /// Notes a row; how many of its bytes were written before, None if it is not followed, and how
    /// long ago the first of them was, ns. A block that is written in part counts as written.
    pub fn see(&mut self, request: &Request, row: &Row) -> (Option<u32>, Option<u64>) {
        if request.op != Op::Write || row.bytes == 0 {
            return (Some(0), None);
        }
        if row.bytes > MOST_BYTES || self.chunks.len() >= MOST_CHUNKS {
            self.missed += 1;
            return (None, None);
        }
        let (mut rewritten, mut since) = (0, None);
        let end = row
            .sector
            .saturating_add(u64::from(row.bytes).div_ceil(512));
        let mut sector = row.sector;
        while sector < end {
            let number = sector / (BLOCK * CHUNK);
            let chunk_end = (number + 1).saturating_mul(BLOCK * CHUNK).min(end);
            let chunk = self.chunk(request.device, number);
            while sector < chunk_end {
                let next = (sector / BLOCK + 1).saturating_mul(BLOCK).min(end);
                let at = (sector / BLOCK % CHUNK) as usize;
                if chunk.writes[at] > 0 {
                    rewritten += (next - sector) * 512;
                    since = since.or(Some(request.time_ns.saturating_sub(chunk.last_ns[at])));
                }
                chunk.last_ns[at] = request.time_ns;
                chunk.writes[at] = chunk.writes[at].saturating_add(1);
                (chunk.file[at], chunk.kind[at]) = (row.file, row.kind);
                sector = next;
            }
        }
        let rewritten = rewritten.min(u64::from(row.bytes));
        (u32::try_from(rewritten).ok(), since)
    }

    fn chunk(&mut self, device: u32, number: u64) -> &mut Chunk {
        let place = *self.places.entry((device, number)).or_insert_with(|| {
            self.chunks.push(Chunk::default());
            self.chunks.len() as u32 - 1
        });
        &mut self.chunks[place as usize]
    }

    /// What there is to tell in the end.
    pub fn finish(self) -> Locality {
        Locality {
            missed: self.missed,
            hottest: self.hottest(HOTTEST),
        }
    }

    /// The ranges that were written most often, at most `most` of them.
    fn hottest(&self, most: usize) -> Vec<Hot> {
        let again = |place: u32| self.chunks[place as usize].writes.iter().any(|&w| w > 1);
        let mut places: Vec<((u32, u64), u32)> = self
            .places
            .iter()
            .map(|(&key, &place)| (key, place))
            .filter(|&(_, place)| again(place))
            .collect();
        places.sort_unstable();
        let mut ranges: Vec<Hot> = Vec::new();
        for ((device, number), place) in places {
            let chunk = &self.chunks[place as usize];
            for at in (0..CHUNK as usize).filter(|&at| chunk.writes[at] > 1) {
                let sector = (number * CHUNK + at as u64) * BLOCK;
                let block = Hot {
                    device,
                    sector,
                    sectors: BLOCK,
                    writes: chunk.writes[at],
                    file: chunk.file[at],
                    kind: chunk.kind[at],
                };
                match ranges.last_mut().filter(|range| range.goes_on_in(&block)) {
                    Some(range) => range.sectors += BLOCK,
                    None => ranges.push(block),
                }
            }
        }
        ranges.sort_by_key(|r| (Reverse((r.writes, r.sectors)), r.device, r.sector));
        ranges.truncate(most);
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_again_is_told() {
        let mut rewrites = Rewrites::default();
        let mut write = |time_ns, sector, bytes| {
            let request = Request {
                time_ns,
                op: Op::Write,
                ..Request::default()
            };
            rewrites.see(
                &request,
                &Row {
                    sector,
                    bytes,
                    ..Row::default()
                },
            )
        };
        assert_eq!(write(10, 0, 4096), (Some(0), None));
        assert_eq!(write(15, 8, 8192), (Some(0), None));
        assert_eq!(write(30, 0, 8192), (Some(8192), Some(20)));
        assert_eq!(write(40, 16, 16384), (Some(4096), Some(25)));
        assert_eq!(write(50, 16, 512), (Some(512), Some(10)));
        assert_eq!(write(60, 16, MOST_BYTES + 512), (None, None));
        let hot = |sector, sectors, writes| Hot {
            device: 0,
            sector,
            sectors,
            writes,
            file: FileId::NONE,
            kind: None,
        };
        assert_eq!(rewrites.hottest(9), [hot(16, 8, 3), hot(0, 16, 2)]);
    }
}
