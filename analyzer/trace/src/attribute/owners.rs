// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds who owned a block of metadata when it was written: blocks change owners, and the snapshot knows only the last one.
//!
//! ```text
//!            given back by 12      given back by 20        snapshot
//! ──── 12 ────────┤    ├───── 20 ─────────┤   ├──── 31 ────┤
//! ```
//! The writer of a directory, extents or attributes does not name their inode. But whoever frees a block owned it until
//! then, and a block that nobody freed belonged to the snapshot's owner all along.

use std::collections::VecDeque;
use std::io::Read;

use mostrace_bundle::Error;
use mostrace_bundle::entry::{EntryRef, Home, RawFreed};
use mostrace_bundle::table::TableReader;
use mostrace_map::Map;

use super::FileId;
use super::files::Files;
use crate::tally::sum;

/// Everything in flight is later than a commit of this age, ns.
const HORIZON_NS: u64 = 60_000_000_000;

/// The most freed blocks that are taken, one `End` each. If there are more, all are ignored: a few entries can cover every block of
/// a disk.
const MOST_BLOCKS: u64 = 1 << 22;

/// The moment when a block was written, as a transaction number or a time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Moment {
    /// Its copy was written to the journal in this transaction.
    Copied(u32),
    /// It was queued at this time, ns.
    Queued(u64),
}

/// The end of a block's ownership by one inode.
#[derive(Clone, Copy, Debug)]
struct End {
    /// Number of the block, of `1 << shift` sectors.
    block: u64,
    time_ns: u64,
    /// Number of the transaction; 0 without a journal.
    tid: u32,
    owner: FileId,
}

/// All freed blocks, sorted by block and then by time.
#[derive(Default)]
pub(super) struct Owners {
    /// True if the recorder reports freed blocks.
    is_told: bool,
    shift: u32,
    ends: Vec<End>,
    /// The latest commits: when each was queued (ns), and its transaction.
    commits: VecDeque<(u64, u32)>,
}

impl Owners {
    /// Reads the table of freed blocks to its end.
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
        // The largest power of two that divides all edges is the block size, or several blocks that were always freed
        // together.
        let shift = edges.map(u64::trailing_zeros).min();
        // If every range begins and ends at 0, none contains a block.
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
        // The sort is stable: entries of one block stay in time order.
        ends.sort_by_key(|end| end.block);
        Ok(Owners {
            is_told: true,
            shift,
            ends,
            commits: VecDeque::new(),
        })
    }

    /// Returns true if the recorder reports freed blocks; otherwise a block may have had another owner unnoticed.
    pub fn is_told(&self) -> bool {
        self.is_told
    }

    /// Notes that the commit of transaction `tid` was queued at `time_ns`.
    pub fn commit(&mut self, time_ns: u64, tid: u32) {
        let oldest = time_ns.saturating_sub(HORIZON_NS);
        // The last commit before the horizon is kept: it shows that all earlier ones are over.
        while self
            .commits
            .get(1)
            .is_some_and(|&(time_ns, _)| time_ns < oldest)
        {
            self.commits.pop_front();
        }
        self.commits.push_back((time_ns, tid));
    }

    /// Returns the owner of the block at `sector` at that moment, if somebody freed the block later; None if nobody did.
    pub fn at(&self, sector: u64, moment: Moment) -> Option<FileId> {
        let end = self
            .ends_of(sector)
            .find(|end| !self.is_over(end, moment))?;
        Some(end.owner)
    }

    /// Returns the last time at which the block at `sector` was freed before it was queued at `time_ns`, ns.
    pub fn freed_ns(&self, sector: u64, time_ns: u64) -> Option<u64> {
        let ends = self.ends_of(sector);
        let over = ends.take_while(|end| self.is_over(end, Moment::Queued(time_ns)));
        over.last().map(|end| end.time_ns)
    }

    /// Returns the ends of the block at `sector` in the order of time.
    fn ends_of(&self, sector: u64) -> impl Iterator<Item = &End> {
        let block = sector >> self.shift;
        let first = self.ends.partition_point(|end| end.block < block);
        let ends = self.ends.get(first..).unwrap_or_default();
        ends.iter().take_while(move |end| end.block == block)
    }

    /// Returns true if the ownership had ended at that moment. A journal keeps a freed block from being reused until the
    /// transaction is committed, and may write it home until then.
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

/// Compares transaction numbers, which wrap around.
fn is_before(one: u32, other: u32) -> bool {
    other.wrapping_sub(one).wrapping_sub(1) < u32::MAX / 2
}

/// Returns the first sector and the end of the range on the disk; None if its place on the disk is unknown.
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
