// SPDX-License-Identifier: MIT OR Apache-2.0
//! Matches entries of empty flushes, which cannot be found by sector because they have none.

use std::collections::VecDeque;

use mostrace_bundle::entry::{RawHead, RawProcess, Stage};

use super::note::Note;
use super::{FileId, Op};
use crate::blktrace::{Completion, Part};
use crate::tally::Tally;

/// The largest distance between an entry and its Q or C, ns. The thread may be preempted in between, and its CPU if that is virtual
/// (529 ms were seen); but it waits for each of its flushes.
const SLACK_NS: u64 = 1_000_000_000;
/// More empty flushes than can be in flight at a time.
const LIMIT: usize = 4096;

/// The entry of an empty flush.
#[derive(Clone, Copy)]
pub(super) struct Empty {
    /// Time of Q, ns; the entry's own time if that is missing.
    pub submit_ns: u64,
    pub note: Note,
    /// The file that was synced, if the flush was caused by a sync.
    pub file: FileId,
}

/// When and where a probe made its entries.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Moment {
    time_ns: u64,
    cpu: u16,
}

impl Moment {
    fn of(head: &RawHead) -> Self {
        Moment {
            time_ns: head.time_ns.get(),
            cpu: head.cpu.get(),
        }
    }

    /// Returns true if a completion on this CPU may be that of the entry.
    fn is_before(self, completion: &Completion<'_>) -> bool {
        u32::from(self.cpu) == completion.cpu && self.time_ns <= completion.time_ns
    }
}

struct Waiting {
    moment: Moment,
    pid: u32,
    sector: u64,
    empty: Empty,
}

/// Empty flushes that wait for their completion, oldest first.
#[derive(Default)]
pub(super) struct Empties {
    /// Entries made at Q, by time.
    queued: VecDeque<Waiting>,
    /// Entries made at C, by time. Most are of completions that have not been read yet.
    completed: VecDeque<Waiting>,
    /// Synced files whose flush has not been read yet.
    early: VecDeque<(Moment, FileId)>,
    dropped: u64,
}

impl Empties {
    pub fn insert(&mut self, raw: &RawProcess, note: Note) {
        let moment = Moment::of(&raw.head);
        let mut empty = Empty {
            submit_ns: match raw.submit_ns.get() {
                0 => moment.time_ns,
                ns => ns,
            },
            note,
            file: FileId::NONE,
        };
        let list = match raw.head.stage {
            Stage::COMPLETE => {
                empty.file = self.take_early(moment);
                &mut self.completed
            }
            _ => &mut self.queued,
        };
        if list.len() >= LIMIT {
            list.pop_front();
            self.dropped.tally(1);
        }
        let waiting = Waiting {
            moment,
            pid: raw.pid.get(),
            sector: raw.head.sector.get(),
            empty,
        };
        let before = |w: &Waiting| w.moment.time_ns <= moment.time_ns;
        match list.iter().rposition(before) {
            Some(last) => list.insert(last.saturating_add(1), waiting),
            None => list.push_front(waiting),
        }
    }

    /// Sets the file that was synced. Its entry has the time and the CPU of the flush's, which may come later: they are in two
    /// tables, and each is only roughly in time order.
    pub fn tell(&mut self, head: &RawHead, file: FileId) {
        let moment = Moment::of(head);
        match self.completed.iter_mut().rfind(|w| w.moment == moment) {
            Some(waiting) => waiting.empty.file = file,
            None => {
                if self.early.len() >= LIMIT {
                    self.early.pop_front();
                }
                self.early.push_back((moment, file));
            }
        }
    }

    /// Removes and returns the file that was told for a flush before the flush itself.
    fn take_early(&mut self, moment: Moment) -> FileId {
        let at = self.early.iter().rposition(|(m, _)| *m == moment);
        let early = at.and_then(|at| self.early.remove(at));
        early.map_or(FileId::NONE, |(_, file)| file)
    }

    /// Removes and returns the entry of a request that manages zones. It has no bytes either but, unlike a flush, it was issued.
    pub fn take_of_zones(&mut self, completion: &Completion<'_>) -> Option<Empty> {
        let last = self.completed.get(self.last_before(completion)?)?;
        let is_its =
            last.sector == completion.sector && last.empty.note.op.is_some_and(Op::is_of_zones);
        is_its.then(|| self.take_completed(completion)).flatten()
    }

    /// Returns the index of the last entry made at C that was made before this C on its CPU.
    fn last_before(&self, completion: &Completion<'_>) -> Option<usize> {
        let mut made = self.completed.range(..self.made_by(completion));
        made.rposition(|w| w.moment.is_before(completion))
    }

    /// Returns the number of entries made at C by the time of this C.
    fn made_by(&self, completion: &Completion<'_>) -> usize {
        let is_made = |w: &Waiting| w.moment.time_ns <= completion.time_ns;
        self.completed.partition_point(is_made)
    }

    /// Removes and returns the entry of a flush.
    pub fn take(&mut self, completion: &Completion<'_>) -> Option<Empty> {
        self.take_completed(completion)
            .or_else(|| self.take_queued(completion.parts.first()?))
    }

    /// Returns the last entry made at C before this C on its CPU, because the probe runs before the tracer. Older entries
    /// have lost their C and are dropped.
    fn take_completed(&mut self, completion: &Completion<'_>) -> Option<Empty> {
        let found = self.completed.get(self.last_before(completion)?)?;
        let near = completion.time_ns.abs_diff(found.moment.time_ns) <= SLACK_NS;
        let empty = near.then_some(found.empty);
        let before = self.completed.len();
        for at in (0..self.made_by(completion)).rev() {
            if self.completed.get(at)?.moment.is_before(completion) {
                self.completed.remove(at);
            }
        }
        let taken = before.saturating_sub(self.completed.len());
        self.dropped.tally(taken.saturating_sub(near.into()) as u64);
        empty
    }

    /// Returns the entry made at Q by the same thread that lies nearest to the Q of `part`.
    fn take_queued(&mut self, part: &Part) -> Option<Empty> {
        let (q_ns, pid) = (part.q_ns?, part.pid?);
        let distance = |w: &Waiting| w.empty.submit_ns.abs_diff(q_ns);
        let (at, _) = self
            .queued
            .iter()
            .enumerate()
            .filter(|(_, w)| w.pid == pid && distance(w) <= SLACK_NS)
            .min_by_key(|(_, w)| distance(w))?;
        self.queued.remove(at).map(|w| w.empty)
    }

    /// Returns how many entries no completion matched.
    pub fn left(&self) -> u64 {
        let waiting = [&self.queued, &self.completed].map(|list| list.len() as u64);
        waiting.into_iter().fold(self.dropped, u64::saturating_add)
    }
}
