// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whose a block of metadata was: blocks change hands, and the snapshot knows the last owner alone.
//!
//! ```text
//!            given back by 12      given back by 20        snapshot
//! ──── 12 ────────┤    ├───── 20 ─────────┤   ├──── 31 ────┤
//! ```
//! What writes a directory, extents or attributes knows of blocks alone; but who gives a block back had it until
//! then, and if nobody did, it was all along whose it is at the end.

use std::collections::VecDeque;
use std::io::Read;

use mostrace_bundle::Error;
use mostrace_bundle::entry::{EntryRef, Home, RawFreed};
use mostrace_bundle::table::TableReader;
use mostrace_map::Map;

use super::FileId;
use super::file::Files;
use crate::tally::sum;

/// Commits of so long ago are over for everything that is under way, ns.
const HORIZON_NS: u64 = 60_000_000_000;

/// If more blocks were given back, nothing is kept and nothing is told of them: a few entries can stand for all blocks of a disk.
const MOST_BLOCKS: u64 = 1 << 22;

/// When a block was written, as far as its life is concerned.
#[derive(Clone, Copy, Debug)]
pub(super) enum Moment {
    /// Its copy went into the journal with this transaction.
    Copied(u32),
    /// It was queued then, ns.
    Queued(u64),
}

/// The end of a block's life with one owner.
#[derive(Clone, Copy, Debug)]
struct End {
    /// Number of the block, of `1 << shift` sectors.
    block: u64,
    time_ns: u64,
    /// 0 without a journal.
    tid: u32,
    owner: FileId,
}

/// All that was given back, by block and in the order of time.
#[derive(Default)]
pub(super) struct Owners {
    /// Whether the recorder tells of what is given back.
    is_told: bool,
    shift: u32,
    ends: Vec<End>,
    /// Of late: when its commit was queued, and the transaction.
    commits: VecDeque<(u64, u32)>,
}

impl Owners {
    /// Reads the table to its end.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read<R: Read>(
        table: &mut TableReader<R>,
        files: &mut Files<'_>,
        map: Option<&Map>,
    ) -> Result<Owners, Error> {
        let mut freed = Vec::new();
        while let Some(entry) = table.next_if(|_| true)? {
            if let EntryRef::Freed(raw) = entry
                && let Some(range) = range_of(raw, map)
                && let Some(owner) = files.freed(raw)
            {
                freed.push((range, *raw, owner));
            }
        }
        let edges = freed.iter().flat_map(|((from, to), ..)| [*from, *to]);
        // What divides all of them is a block, or blocks that were always one.
        let shift = edges.map(u64::trailing_zeros).min();
        // Where all begin and end at 0, none has a block.
        let shift = shift.filter(|shift| *shift < u64::BITS).unwrap_or(0);
        let lengths = freed
            .iter()
            .map(|((from, to), ..)| (to >> shift).saturating_sub(from >> shift));
        if sum(lengths) > MOST_BLOCKS {
            return Ok(Owners::default());
        }
        let mut ends = Vec::new();
        for ((from, to), raw, owner) in freed {
            ends.extend((from >> shift..to >> shift).map(|block| End {
                block,
                time_ns: raw.head.time_ns.get(),
                tid: raw.tid.get(),
                owner,
            }));
        }
        // Stable: those of a block stay as they came.
        ends.sort_by_key(|end| end.block);
        Ok(Owners {
            is_told: true,
            shift,
            ends,
            commits: VecDeque::new(),
        })
    }

    /// Whether the recorder tells of what is given back: else a block may have been another's all the same.
    pub fn is_told(&self) -> bool {
        self.is_told
    }

    /// A commit was queued then.
    pub fn commit(&mut self, time_ns: u64, tid: u32) {
        let oldest = time_ns.saturating_sub(HORIZON_NS);
        // The last one of before tells that all before it are over.
        while self
            .commits
            .get(1)
            .is_some_and(|&(time_ns, _)| time_ns < oldest)
        {
            self.commits.pop_front();
        }
        self.commits.push_back((time_ns, tid));
    }

    /// Who gave the block at `sector` back after it was written: whose it was then. None: nobody did.
    pub fn at(&self, sector: u64, moment: Moment) -> Option<FileId> {
        let block = sector >> self.shift;
        let first = self.ends.partition_point(|end| end.block < block);
        let ends = self.ends.get(first..).unwrap_or_default();
        let mut ends = ends.iter().take_while(|end| end.block == block);
        let end = ends.find(|end| !self.is_over(end, moment))?;
        Some(end.owner)
    }

    /// Whether the life had ended. A journal keeps a freed block from being used until the transaction is committed, and
    /// may write it home till then.
    fn is_over(&self, end: &End, moment: Moment) -> bool {
        match moment {
            Moment::Copied(tid) => end.tid != 0 && is_before(end.tid, tid),
            Moment::Queued(time_ns) if end.tid == 0 => end.time_ns <= time_ns,
            Moment::Queued(time_ns) => {
                let mut commits = self.commits.iter().rev();
                let last = commits.find(|(queued_ns, _)| *queued_ns <= time_ns);
                last.is_some_and(|&(_, tid)| !is_before(tid, end.tid))
            }
        }
    }
}

/// Transactions' numbers go round.
fn is_before(one: u32, other: u32) -> bool {
    other.wrapping_sub(one).wrapping_sub(1) < u32::MAX / 2
}

/// The sectors on the disk; None if they lie on none that is known.
fn range_of(raw: &RawFreed, map: Option<&Map>) -> Option<(u64, u64)> {
    let sector = raw.head.sector.get();
    let from = match (raw.home, map) {
        (Home::FILESYSTEM, Some(map)) => map.down(sector)?,
        (Home::FILESYSTEM, None) => return None,
        _ => sector,
    };
    let to = from.checked_add(u64::from(raw.head.bytes.get()) / 512)?;
    Some((from, to))
}
