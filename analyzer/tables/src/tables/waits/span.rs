// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of a recording, reduced to what tells of a wait: when each was queued, issued and completed, and for whom.

use std::collections::VecDeque;

use mostrace_bundle::entry::Origin;
use mostrace_map::class::{Class, Kind};
use polars::prelude::{Column, DataFrame, PolarsResult, col};

use crate::facts::{Facts, NONE_32, Part, Rows, bits, stored_column as at};
use mostrace_trace::attribute::{File, Op};

/// The place of blkparse's letter F for a flush ahead of the data among [`bits::RWBS`].
const FLUSH: u64 = 1 << 2;

/// The kinds of rows that somebody may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Data,
    Metadata,
    /// A block of jbd2's journal that is not its commit record.
    Journal,
    /// jbd2's commit record.
    CommitRecord,
    FastCommit,
    /// f2fs's checkpoint pack.
    Checkpoint,
    /// The end of a flush sequence, or of an empty flush.
    Flush,
    /// A cache flush that the device executed.
    DeviceFlush,
}

/// A row; times are in ns of the trace's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub what: What,
    /// True if it wrote bytes.
    pub writes: bool,
    /// True if its pages are of a page cache, which writes them back for whoever waits.
    pub is_cached: bool,
    /// True if it waited for a cache flush before it was issued.
    pub has_preflush: bool,
    /// [`NONE`](crate::facts::NONE) if it is not known, as are the times below.
    pub queued: u64,
    pub issued: u64,
    pub completed: u64,
    /// The time when its first page became dirty.
    pub dirtied: u64,
    pub sector: u64,
    /// Number of its submitter among the names of the facts.
    pub process: u32,
    pub pid: u32,
    pub tgid: u32,
    /// Inode and generation; zeros without a file.
    pub file: (u64, u32),
    /// Number of the jbd2 transaction, or [`NONE_32`].
    pub tid: u32,
}

/// The rows of one recording, in the order of their completions.
pub(super) struct Spans<'f> {
    facts: &'f Facts,
    origin: u32,
    frames: Box<dyn Iterator<Item = PolarsResult<DataFrame>> + 'f>,
    ahead: VecDeque<Span>,
}

impl<'f> Spans<'f> {
    /// Reads the rows of the recording at index `origin`.
    pub fn new(facts: &'f Facts, origin: usize) -> Spans<'f> {
        let columns = [
            at::origin,
            at::process,
            at::file,
            at::tid,
            at::device_flush,
            at::time,
            at::d,
            at::q,
            at::dirty,
            at::sector,
            at::bits,
        ];
        let view = facts.view(columns.map(col).to_vec(), Part::Any, None, Rows::Whole);
        Spans {
            facts,
            origin: u32::try_from(origin).unwrap_or(u32::MAX),
            frames: Box::new(view.map(|frame| frame?.collect())),
            ahead: VecDeque::new(),
        }
    }

    /// Returns the next row that was completed by `time_ns`.
    pub fn next_by(&mut self, time_ns: u64) -> PolarsResult<Option<Span>> {
        while self.ahead.is_empty() {
            let Some(frame) = self.frames.next() else {
                return Ok(None);
            };
            self.take(&frame?)?;
        }
        let is_due = self
            .ahead
            .front()
            .is_some_and(|span| span.completed <= time_ns);
        Ok(is_due.then(|| self.ahead.pop_front()).flatten())
    }

    /// Appends the rows of a frame that tell of a wait.
    fn take(&mut self, frame: &DataFrame) -> PolarsResult<()> {
        let columns: Vec<Column> = frame.columns().iter().map(Column::rechunk).collect();
        let long = |at: usize| columns[at].u64()?.cont_slice();
        let short = |at: usize| columns[at].u32()?.cont_slice();
        let (origin, process, file) = (short(0)?, short(1)?, short(2)?);
        let (tid, flush) = (short(3)?, short(4)?);
        let (completed, issued, queued) = (long(5)?, long(6)?, long(7)?);
        let (dirtied, sector, word) = (long(8)?, long(9)?, long(10)?);
        let names = self.facts.names();
        for row in 0..frame.height() {
            let Some(what) = What::of(word[row]).filter(|_| origin[row] == self.origin) else {
                continue;
            };
            let who = names.processes.get(process[row] as usize);
            let file = names.files.get(file[row] as usize);
            let id = |file: &File| Some((file.inode?, file.generation.unwrap_or(0)));
            let letters = bits::RWBS.of(word[row]);
            self.ahead.push_back(Span {
                what,
                writes: op_of(word[row]) == Op::Write,
                is_cached: origin_of(word[row]) == Some(Origin::FILE),
                has_preflush: letters & FLUSH != 0 || flush[row] != NONE_32,
                queued: queued[row],
                issued: issued[row],
                completed: completed[row],
                dirtied: dirtied[row],
                sector: sector[row],
                process: process[row],
                pid: who.and_then(|who| who.pid).unwrap_or(NONE_32),
                tgid: who.and_then(|who| who.tgid).unwrap_or(NONE_32),
                file: file.and_then(id).unwrap_or_default(),
                tid: tid[row],
            });
        }
        Ok(())
    }
}

impl What {
    /// Decodes a row's stored bits; None if nobody waits for such a row, or if what it holds is not known.
    fn of(word: u64) -> Option<What> {
        let kind = bits::KIND.of(word).checked_sub(1);
        let kind = kind.and_then(|at| Kind::ALL.get(at as usize));
        let class = kind.map(|kind| kind.class());
        let origin = origin_of(word);
        Some(match (op_of(word), kind, class, origin) {
            (Op::Flush, ..) => What::Flush,
            (Op::DeviceFlush, ..) => What::DeviceFlush,
            (Op::Discard | Op::Other, ..) => return None,
            (op, ..) if op.is_of_zones() => return None,
            (_, Some(Kind::Commit), ..) => What::CommitRecord,
            (_, Some(Kind::FastCommit), ..) => What::FastCommit,
            (_, Some(Kind::Checkpoint), ..) => What::Checkpoint,
            (_, _, Some(Class::Journal), _) => What::Journal,
            // Directories of ext4 and FAT are data by class, and metadata to whoever writes them.
            (_, _, _, Some(Origin::BDEV | Origin::NODE | Origin::META)) => What::Metadata,
            (_, _, Some(Class::Metadata), _) => What::Metadata,
            (_, _, Some(Class::Data), _) => What::Data,
            (_, _, _, Some(Origin::FILE | Origin::DIRECT)) => What::Data,
            (Op::WriteZeroes, ..) => What::Data,
            _ => return None,
        })
    }
}

fn op_of(word: u64) -> Op {
    let op = Op::ALL.get(bits::OP.of(word) as usize);
    op.copied().unwrap_or_default()
}

fn origin_of(word: u64) -> Option<Origin> {
    let code = bits::ORIGIN.of(word).checked_sub(1)?;
    u8::try_from(code).ok().map(Origin)
}
