// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds what each call for durability waited for, from the intervals that a recording has anyway.
//!
//! ```text
//! call.entries ───── Ask ─────────────┐
//! rows ───────────── Span ─┬──────────┼─ intervals by layer ─ divide ─ Parts, which sum to the call's time
//!                          └─ Commits ┤
//! handle.entries ──────────┘          │
//! f2fs.entries ───── Checkpoints ─────┘
//! ```
//!
//! A caller waits for one thing after another: for contents and metadata that it writes, then for the commit, then for the cache.
//! A call did not wait for what was completed after it returned. Where the recording does not tell who waited for what, the time
//! belongs to [`Wait::Other`].

mod ask;
mod checkpoints;
mod commits;
mod latest;
mod span;
mod split;
mod view;

use mostrace_bundle::DeviceNumber;
use std::cell::Cell;
use std::io::Read;

use mostrace_bundle::entry::{EntryRef, RawCall};
use mostrace_bundle::table::TableReader;

use super::call_files::Error;
use crate::facts::{Facts, NONE};
use ask::Ask;
use checkpoints::Checkpoints;
use commits::{Commit, Commits};
use latest::{Ends, Latest};
use span::{Span, Spans, What};
use split::{Interval, Layer, divide};
pub use split::{Parts, Wait};
pub use view::{BY, Sums};

/// The largest deviation of entries from time order in their table, ns.
const DISORDER_NS: u64 = 20_000_000;
/// The most rows that are kept; a call during which more were completed is not divided.
const KEPT: usize = 1 << 18;
/// The rows that may be looked at for each row and call that was read, so that a recording of calls that all last from its beginning
/// to its end is read in bounded time. A thousand threads may wait at once.
const LOOKS: u64 = 1 << 10;
/// Length of a thread's name with its NUL.
const TASK_COMM_LEN: usize = 16;

/// Divides calls for durability, which come in the order of their returns.
pub struct Waits<'f, R> {
    facts: &'f Facts,
    spans: Spans<'f>,
    /// The latest rows, in the order of their completions.
    recent: Latest<Span>,
    handles: Option<TableReader<R>>,
    steps: Option<TableReader<R>>,
    commits: Commits,
    checkpoints: Checkpoints,
    /// The number of rows that may still be looked at; None if that was not enough for the current call.
    looks: Cell<Option<u64>>,
}

impl<'f, R: Read> Waits<'f, R> {
    /// Reads the recording at index `origin`: its rows, its `handle.entries` and its `f2fs.entries`, if it has these tables.
    pub fn new(
        facts: &'f Facts,
        origin: usize,
        handles: Option<TableReader<R>>,
        steps: Option<TableReader<R>>,
    ) -> Waits<'f, R> {
        Waits {
            facts,
            spans: Spans::new(facts, origin),
            recent: Latest::new(KEPT),
            handles,
            steps,
            commits: Commits::default(),
            checkpoints: Checkpoints::default(),
            looks: Cell::new(Some(0)),
        }
    }

    /// Returns what a call waited for. None if it is no call for durability, if its time is not known, or if too many requests
    /// were completed meanwhile, or during it and other calls.
    ///
    /// # Errors
    /// Returns an error if a table or a temporary file cannot be read.
    pub fn of(&mut self, raw: &RawCall) -> Result<Option<Parts>, Error> {
        let Some(ask) = Ask::of(raw) else {
            return Ok(None);
        };
        self.read_to(ask.end_ns)?;
        let during = self.commits.during(&ask).zip(self.checkpoints.during(&ask));
        let Some((commits, checkpoints)) =
            during.filter(|_| self.recent.has_all_since(ask.start_ns))
        else {
            return Ok(None);
        };
        self.may_look();
        self.look(commits.saturating_add(checkpoints));
        let intervals = self.intervals(&ask);
        let parts = divide(ask.start_ns, ask.end_ns, &intervals);
        Ok(self.looks.get().map(|_| parts))
    }

    /// Reads all tables up to a time, ns.
    fn read_to(&mut self, time_ns: u64) -> Result<(), Error> {
        let due = time_ns.saturating_add(DISORDER_NS);
        if let Some(handles) = &mut self.handles {
            while let Some(entry) = handles.next_if(|head| head.time_ns.get() <= due)? {
                if let EntryRef::Handle(raw) = entry {
                    self.commits.handle(raw);
                }
            }
        }
        if let Some(steps) = &mut self.steps {
            while let Some(entry) = steps.next_if(|head| head.time_ns.get() <= due)? {
                if let EntryRef::F2fs(raw) = entry {
                    self.checkpoints.step(raw);
                }
            }
        }
        while let Some(span) = self.spans.next_by(time_ns)? {
            self.may_look();
            self.commits.see(&span, &self.recent);
            self.recent.push(span);
        }
        Ok(())
    }

    /// Notes that a row or a call was read.
    fn may_look(&self) {
        let looks = self.looks.get().unwrap_or(0);
        self.looks.set(Some(looks.saturating_add(LOOKS)));
    }

    /// Notes that this many rows are looked at; returns false if no more may be.
    fn look(&self, number: usize) -> bool {
        let left = self.looks.get();
        let left = left.and_then(|looks| looks.checked_sub(number as u64));
        self.looks.set(left);
        left.is_some()
    }

    /// Returns the rows that were completed in an interval, ns; none if no more may be looked at.
    fn completed(&self, from: u64, to: u64) -> impl DoubleEndedIterator<Item = &Span> {
        let rows = self.recent.during(from, to);
        match self.look(rows.len()) {
            true => rows,
            false => Default::default(),
        }
    }

    /// Returns the intervals of everything that was in progress for a call.
    fn intervals(&self, ask: &Ask) -> Vec<Interval> {
        let mut intervals = Vec::new();
        let wanted = self.checkpoints.of(ask);
        // What the caller writes for a checkpoint is the checkpoint's.
        let is_of_checkpoint = |span: &Span| {
            let wanted = wanted.as_ref().map(|wanted| wanted.checkpoint);
            wanted.is_some_and(|one| (one.begin..=one.end).contains(&span.queued))
        };
        let mut is_flushed = false;
        let mut written_ns = ask.start_ns;
        for span in self.completed(ask.start_ns, ask.end_ns) {
            if span.queued == NONE {
                continue;
            }
            let is_own = self.is_own(span, ask);
            let layer = match span.what {
                What::Flush if is_own => {
                    is_flushed = true;
                    intervals.push((Layer::OwnFlush, self.flush_began(span), span.completed));
                    continue;
                }
                What::FastCommit if is_own => Layer::Commit,
                What::Data if is_own || is_written_back(span, ask) => Layer::Data,
                What::Metadata if is_own || is_written_back(span, ask) => Layer::Metadata,
                _ => continue,
            };
            if is_of_checkpoint(span) {
                continue;
            }
            intervals.push((layer, span.queued, span.completed));
            written_ns = written_ns.max(span.completed);
            if is_own && span.has_preflush {
                self.executed(Layer::OwnFlush, span, &mut intervals);
            }
        }
        if let Some(wanted) = &wanted {
            let (begin, end) = (wanted.checkpoint.begin, wanted.checkpoint.end);
            intervals.push((Layer::CommitStart, wanted.since, begin));
            self.commit(begin, end, wanted.checkpoint.pid, None, &mut intervals);
            return intervals;
        }
        if let Some(commit) = self.commits.of(ask, is_flushed) {
            self.jbd2(&commit, ask, &mut intervals);
        } else if !is_flushed {
            self.flush_by_thread(ask, written_ns, &mut intervals);
        }
        intervals
    }

    /// Adds the commit of jbd2 that a call waited for.
    fn jbd2(&self, commit: &Commit, ask: &Ask, intervals: &mut Vec<Interval>) {
        // The call has written all that it writes itself before it waits for the commit.
        let written = self.completed(ask.start_ns, commit.end).rev().find(|span| {
            matches!(span.what, What::Data | What::Metadata)
                && span.queued < commit.begin
                && (self.is_own(span, ask) || is_written_back(span, ask))
        });
        let since = written.map_or(ask.start_ns, |span| span.completed);
        intervals.push((Layer::CommitStart, since, commit.begin));
        let record = Some(&commit.record);
        self.commit(commit.begin, commit.end, commit.pid, record, intervals);
    }

    /// Adds a commit or checkpoint that a thread wrote, with its flushes.
    fn commit(
        &self,
        begin: u64,
        end: u64,
        pid: u32,
        record: Option<&Span>,
        intervals: &mut Vec<Interval>,
    ) {
        intervals.push((Layer::Commit, begin, end));
        for span in self.completed(begin, end) {
            let is_queued = span.queued != NONE && span.queued >= begin;
            match span.what {
                What::Flush if span.pid == pid && is_queued => {
                    let interval = (self.flush_began(span), span.completed);
                    intervals.push((Layer::CommitFlush, interval.0, interval.1));
                }
                What::Checkpoint if span.pid == pid && is_queued && span.has_preflush => {
                    self.executed(Layer::CommitFlush, span, intervals);
                }
                _ => {}
            }
        }
        if let Some(record) = record {
            self.executed(Layer::CommitFlush, record, intervals);
        }
    }

    /// Adds the flushes that the device executed while a write with a flush ahead of it waited to be issued.
    fn executed(&self, layer: Layer, write: &Span, intervals: &mut Vec<Interval>) {
        if write.queued == NONE || write.issued == NONE {
            return;
        }
        for span in self.completed(write.queued, write.issued) {
            if span.what == What::DeviceFlush && span.issued != NONE {
                let from = span.issued.max(write.queued);
                intervals.push((layer, from, span.completed));
            }
        }
    }

    /// Returns when a flush was begun to be waited for: an empty one when it was queued, that of a write when its data was written.
    fn flush_began(&self, flush: &Span) -> u64 {
        let before = self.completed(flush.queued, flush.completed).rev();
        let mut written = before.filter(|span| flush.ends(span));
        written.next().map_or(flush.queued, |span| span.completed)
    }

    /// Adds the flushes by which a thread of f2fs's flushes the cache for several callers at once.
    fn flush_by_thread(&self, ask: &Ask, written_ns: u64, intervals: &mut Vec<Interval>) {
        let thread = self.comm(&format!("f2fs_flush-{}", DeviceNumber::of(ask.s_dev)));
        for span in self.completed(written_ns, ask.end_ns) {
            if span.what == What::Flush && span.queued != NONE && self.is_named(span, &thread) {
                let from = span.queued.max(written_ns);
                intervals.push((Layer::OwnFlush, from, span.completed));
            }
        }
    }

    /// Returns true if the caller submitted a row, or a worker of io_uring's did so for it.
    fn is_own(&self, span: &Span, ask: &Ask) -> bool {
        span.pid == ask.pid
            || span.tgid == ask.tgid
                && span.queued >= ask.start_ns
                && (span.file == ask.file || span.file == (0, 0))
                && self.is_named(span, &self.comm(&format!("iou-wrk-{}", ask.pid)))
    }

    /// Returns a thread's name as the names of the facts have it.
    fn comm(&self, name: &str) -> Box<[u8]> {
        let length = name.len().min(TASK_COMM_LEN.saturating_sub(1));
        self.facts.shown(&name.as_bytes()[..length])
    }

    fn is_named(&self, span: &Span, comm: &[u8]) -> bool {
        let process = self.facts.names().processes.get(span.process as usize);
        process.is_some_and(|process| process.comm.as_deref() == Some(comm))
    }
}

impl Ends for Span {
    fn end_ns(&self) -> u64 {
        self.completed
    }
}

impl Span {
    /// Returns true if this flush ends the flush sequence of a write.
    fn ends(&self, write: &Span) -> bool {
        write.writes
            && (self.sector, self.queued, self.pid) == (write.sector, write.queued, write.pid)
    }
}

/// Returns true if somebody else wrote back what was dirty when the call began, for which it waits as well.
fn is_written_back(span: &Span, ask: &Ask) -> bool {
    let was_dirty = span.queued < ask.start_ns || span.dirtied <= ask.start_ns;
    let is_asked = match ask.is_of_all() {
        true => span.is_cached || span.what == What::Metadata,
        false => span.is_cached && span.file == ask.file,
    };
    span.writes && was_dirty && is_asked
}
