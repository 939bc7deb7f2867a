// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls that changed the contents of files since these were last written out.
//!
//! The kernel tells who made a folio dirty that was clean. It does not tell who changes the folio afterwards, nor who changes
//! another block of a large one. The calls do: each has its range of the file, its task, its beginning and its end.

use std::cell::Cell;
use std::collections::VecDeque;

use smallvec::{SmallVec, smallvec};

use super::Caller;
use super::again::{Again, Dirtied};
use super::change::{Act, Change, Inode, NEVER};
use super::changed::{Changed, Changers};
use super::spans::Spans;
use crate::attribute::{HashMap, ProcessId};
use crate::tally::Tally;

/// Most calls and ranges that are kept; beyond it, all are forgotten.
const LIMIT: usize = 1 << 19;
/// Number of calls in progress at one time that are returned for a file.
const IN_PROGRESS: usize = 64;
/// Number of dirtyings of each inode that are remembered as explained.
const EXPLAINED: usize = 8;

/// Runs of blocks, each with its end and the tasks that changed it.
type Runs = SmallVec<[(u64, Changers); 1]>;

/// The changes to the contents of all files that are not written out yet.
#[derive(Default)]
pub(super) struct Writes {
    inodes: HashMap<Inode, OfInode>,
    again: Again,
    count: usize,
    /// Inodes that may have changes which are not known, and from when on, ns.
    forgotten: HashMap<Inode, u64>,
    /// Changes up to this time may have been written out, because something unknown was.
    unsure_ns: u64,
    /// Number of calls, ranges and answers for which there was no room.
    cut_short: usize,
}

#[derive(Default)]
struct OfInode {
    /// Calls that are not entered into `changed` yet.
    ahead: Spans<Cell<Change>>,
    /// Calls whose end nothing tells, one of each caller.
    open: Vec<Change>,
    changed: Changed,
    /// True if ranges of it were forgotten, so that there may be unknown changes.
    is_partial: bool,
    /// These made a page dirty within a known call.
    explained: VecDeque<Dirtied>,
    /// The time of the first shared, writable mapping: stores to it are not seen.
    mapped_ns: Option<u64>,
    /// Number of answers that were cut short.
    cut_short: usize,
}

impl Writes {
    /// Notes a call. It may come ahead of the trace's time.
    pub fn push(&mut self, inode: Inode, change: Change) {
        if self.count >= LIMIT {
            let inodes = std::mem::take(&mut self.inodes);
            self.forgotten
                .extend(inodes.keys().map(|inode| (*inode, 0)));
            self.cut_short.tally(self.count);
            self.count = 0;
        }
        let of = self.inodes.entry(inode).or_default();
        let before = of.size();
        let is_kept = of.push(change);
        self.count.tally(of.size().saturating_sub(before));
        if !is_kept {
            self.cut_short.tally(1);
            self.lose(inode, change.start_ns);
        }
    }

    /// Notes that there is a change to a file, begun at `time_ns`, whose place is not known.
    pub fn lose(&mut self, inode: Inode, time_ns: u64) {
        let from_ns = self.forgotten.entry(inode).or_insert(time_ns);
        *from_ns = time_ns.min(*from_ns);
    }

    /// Notes that something unknown was written out by `time_ns`.
    pub fn written_unseen(&mut self, time_ns: u64) {
        self.unsure_ns = self.unsure_ns.max(time_ns);
    }

    /// Notes that a file was mapped shared and writable at `time_ns`.
    pub fn mapped(&mut self, inode: Inode, time_ns: u64) {
        let mapped_ns = &mut self.inodes.entry(inode).or_default().mapped_ns;
        *mapped_ns = Some(mapped_ns.map_or(time_ns, |before| before.min(time_ns)));
    }

    /// Returns true if every change to the file by a call is known, and nothing else may have changed it by `time_ns`.
    pub fn are_all(&self, inode: Inode, time_ns: u64) -> bool {
        let mapped_ns = self.inodes.get(&inode).and_then(|of| of.mapped_ns);
        let forgotten_ns = self.forgotten.get(&inode).copied();
        let mut from_ns = mapped_ns.into_iter().chain(forgotten_ns);
        from_ns.all(|from_ns| time_ns < from_ns)
    }

    /// Returns the tasks that had changed bytes `from..to` by `q_ns`, as runs of blocks with the same answer: the end of each
    /// run, and its tasks. A block has `block` bytes; the first one's page was `dirtied`, if that is known. False if there may be
    /// more: too many calls were made at that time.
    pub fn changers(
        &mut self,
        inode: Inode,
        (from, to): (u64, u64),
        block: u64,
        q_ns: u64,
        dirtied: Option<Dirtied>,
    ) -> (Runs, bool) {
        let unsure_ns = self.unsure_ns;
        let (mut runs, are_all) = self
            .with(inode, |of| of.changers((from, to), block, q_ns, unsure_ns))
            .unwrap_or_else(|| (smallvec![(to, Changers::default())], true));
        let end = behind_block(from, block).min(to);
        let again = dirtied.and_then(|by| self.again.changer(inode, (from, end), by));
        if let Some(caller) = again {
            begin_with(&mut runs, end, caller);
        }
        (runs, are_all)
    }

    /// Notes that bytes `from..to` were written out as they were at `q_ns`. `by` is the only task that had changed them, if
    /// there is only one.
    pub fn written(&mut self, inode: Inode, range: (u64, u64), q_ns: u64, by: Option<ProcessId>) {
        self.again.written(inode, range, q_ns);
        let in_progress = self.with(inode, |of| of.written(range, q_ns, by));
        for written in in_progress.into_iter().flatten() {
            self.again.push(inode, written);
        }
        self.drop_if_unused(inode);
    }

    /// Notes that a task was in a call at `q_ns` and itself wrote to the device what the call passed. Returns the task as it made the
    /// call.
    pub fn written_directly(&mut self, inode: Inode, process: ProcessId, q_ns: u64) -> Caller {
        let mut caller = Caller::from(process);
        self.with(inode, |of| {
            let next_ns = q_ns.saturating_add(1);
            of.ahead.each_over(q_ns, next_ns, |waiting| {
                let change = waiting.get();
                if change.caller.process == process {
                    caller = change.caller;
                    waiting.set(Change {
                        act: Act::WrittenOut,
                        ..change
                    });
                }
            });
        });
        caller
    }

    /// Returns true if the page of the block at byte `at` was `dirtied` within a call that is known.
    pub fn explain(&mut self, inode: Inode, at: u64, block: u64, dirtied: Dirtied) -> bool {
        let here = (at, behind_block(at, block));
        self.again.changer(inode, here, dirtied).is_some()
            || self.with(inode, |of| of.explain(at, dirtied)) == Some(true)
    }

    /// Does something with what is known of an inode; None if nothing is.
    fn with<T>(&mut self, inode: Inode, act: impl FnOnce(&mut OfInode) -> T) -> Option<T> {
        let of = self.inodes.get_mut(&inode)?;
        let before = of.size();
        let result = act(of);
        self.count = self.count.saturating_sub(before);
        self.count.tally(of.size());
        self.cut_short.tally(of.take_cut_short());
        Some(result)
    }

    /// Returns the number of changes and answers for which there was no room. What they are about is not said to be all.
    pub fn cut_short(&self) -> usize {
        self.cut_short
    }

    fn drop_if_unused(&mut self, inode: Inode) {
        let is_unused = |of: &OfInode| of.size() == 0 && of.mapped_ns.is_none() && !of.is_partial;
        if self.inodes.get(&inode).is_some_and(is_unused) {
            self.inodes.remove(&inode);
        }
    }
}

/// Returns the first byte behind the block that holds byte `at`.
fn behind_block(at: u64, block: u64) -> u64 {
    let within = at.checked_rem(block).unwrap_or(0);
    at.saturating_sub(within).saturating_add(block.max(1))
}

/// Adds a task that changed the first blocks, up to `end`, before all others did.
fn begin_with(runs: &mut Runs, end: u64, caller: Caller) {
    let Some((first_end, changers)) = runs.first_mut() else {
        return;
    };
    let others = changers.clone();
    changers.add_first(caller);
    if end < *first_end {
        let rest = std::mem::replace(first_end, end);
        runs.insert(1, (rest, others));
    }
}

/// Returns the end of the blocks from byte `at` on that the same calls touch. Where a call begins or ends, the next block may
/// have another answer.
fn same_until(calls: &[Change], at: u64, block: u64) -> u64 {
    let first = behind_block(at, block);
    let edges = calls.iter().flat_map(|call| [call.from, call.to]);
    let edges = edges.filter(|edge| *edge > at);
    let begins = edges.map(|edge| edge.saturating_sub(edge.checked_rem(block).unwrap_or(0)));
    begins.min().map_or(first, |begin| begin.max(first))
}

impl OfInode {
    fn size(&self) -> usize {
        let waiting = self.ahead.len().saturating_add(self.open.len());
        waiting.saturating_add(self.changed.len())
    }

    /// Returns for how much there was no room since this was asked last.
    fn take_cut_short(&mut self) -> usize {
        let mut cut_short = std::mem::take(&mut self.cut_short);
        cut_short.tally(self.changed.take_cut_short());
        cut_short
    }

    /// Notes a call; returns false if there is no room for it.
    fn push(&mut self, change: Change) -> bool {
        if change.end_ns < NEVER {
            self.ahead.push(Cell::new(change));
            return true;
        }
        let change = Change {
            act: Act::MayHaveChanged,
            ..change
        };
        let same = |other: &&mut Change| other.caller == change.caller;
        if let Some(other) = self.open.iter_mut().find(same) {
            other.from = other.from.min(change.from);
            other.to = other.to.max(change.to);
            other.start_ns = other.start_ns.min(change.start_ns);
            return true;
        }
        let has_room = self.open.len() < IN_PROGRESS;
        if has_room {
            self.open.push(change);
        }
        has_room
    }

    /// Enters the calls that returned by `time_ns`.
    fn enter(&mut self, time_ns: u64) {
        while let Some(change) = self.ahead.pop(time_ns).map(Cell::into_inner) {
            if change.act != Act::WrittenOut {
                self.is_partial |= !self.changed.enter(&change);
            }
        }
    }

    fn changers(
        &mut self,
        (from, to): (u64, u64),
        block: u64,
        q_ns: u64,
        unsure_ns: u64,
    ) -> (Runs, bool) {
        self.enter(q_ns);
        let mut in_progress = Vec::new();
        let are_all = self.each_in_progress(q_ns, |change| {
            if in_progress.len() < IN_PROGRESS {
                in_progress.push(*change);
            }
        });
        let are_few = in_progress.len() < IN_PROGRESS && are_all;
        self.cut_short.tally(usize::from(!are_few));
        let mut runs = Runs::new();
        let mut at = from;
        while at < to {
            let (mut end, mut changers) = self.changed.run(at, to, block, q_ns, unsure_ns);
            if in_progress.iter().any(|change| change.meets(at, end)) {
                end = end.min(same_until(&in_progress, at, block));
                let near = in_progress.iter().filter(|change| change.meets(at, end));
                changers.add_possible(near.map(|change| change.caller));
            }
            match runs.last_mut() {
                Some(last) if last.1 == changers => last.0 = end,
                _ => runs.push((end, changers)),
            }
            at = end;
        }
        (runs, are_few && !self.is_partial)
    }

    /// Returns the calls in progress that had changed bytes which are not theirs any more, with these bytes.
    fn written(&mut self, (from, to): (u64, u64), q_ns: u64, by: Option<ProcessId>) -> Vec<Change> {
        self.enter(q_ns);
        self.is_partial |= !self.changed.forget(from, to, q_ns);
        let (mut cut, mut written) = (Vec::new(), Vec::new());
        let next_ns = q_ns.saturating_add(1);
        self.ahead.each_over(q_ns, next_ns, |waiting| {
            let mut change = waiting.get();
            if !change.changes() || !change.meets(from, to) {
                return;
            }
            // The only task that changed these bytes had done so already.
            if by == Some(change.caller.process) {
                written.push(Change {
                    from: change.from.max(from),
                    to: change.to.min(to),
                    ..change
                });
                cut.extend(change.cut(from, to));
            } else {
                change.act = Act::MayHaveChanged;
            }
            waiting.set(change);
        });
        cut.into_iter()
            .for_each(|part| self.ahead.push(Cell::new(part)));
        written
    }

    /// Passes the calls in progress at `time_ns` that change contents to `take`. Returns false if there may be more.
    fn each_in_progress(&self, time_ns: u64, mut take: impl FnMut(&Change)) -> bool {
        let next_ns = time_ns.saturating_add(1);
        let are_all = self.ahead.each_over(time_ns, next_ns, |waiting| {
            let change = waiting.get();
            if change.changes() {
                take(&change);
            }
        });
        let open = self.open.iter().filter(|c| c.start_ns <= time_ns);
        open.for_each(take);
        are_all
    }

    fn explain(&mut self, at: u64, (process, dirty_ns): Dirtied) -> bool {
        if self.explained.contains(&(process, dirty_ns)) {
            return true;
        }
        let mut is_ahead = false;
        self.each_in_progress(dirty_ns, |change| {
            is_ahead |= change.caller.process == process
        });
        if !is_ahead && !self.changed.has_call(at, process, dirty_ns) {
            return false;
        }
        if self.explained.len() >= EXPLAINED {
            self.explained.pop_front();
        }
        self.explained.push_back((process, dirty_ns));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INODE: Inode = (12, 1);

    fn call(task: u32, from: u64, to: u64, at_ns: u64) -> Change {
        Change {
            act: Act::Changed,
            caller: ProcessId(task).into(),
            from,
            to,
            start_ns: at_ns,
            end_ns: at_ns + 1,
        }
    }

    /// Without the bounds this takes minutes: each call would touch each of the small ranges.
    #[test]
    fn calls_over_many_ranges_leave_an_answer_that_says_it_is_not_all() {
        let mut writes = Writes::default();
        for at in 0..100_000 {
            writes.push(INODE, call(1, 2 * at, 2 * at + 1, at));
        }
        for at in 0..100_000 {
            writes.push(INODE, call(2, 0, 200_000, 100_000 + at));
        }
        let (_, are_all) = writes.changers(INODE, (0, 4096), 4096, 300_000, None);
        assert!(!are_all);
    }

    #[test]
    fn calls_for_which_there_is_no_room_are_counted() {
        let mut writes = Writes::default();
        let count = LIMIT as u64;
        for at in 0..=count {
            writes.push((at % 7, 1), call(1, at, at + 1, at));
        }
        assert_eq!(writes.cut_short(), LIMIT);
        assert!(!writes.are_all((0, 1), count));
        let none = |file| writes.are_all((file, 1), count);
        assert!((0..7).map(none).all(|are_all| !are_all) && writes.are_all((7, 1), count));
    }

    #[test]
    fn a_file_with_too_many_calls_without_an_end_is_not_known() {
        let mut writes = Writes::default();
        for task in 0..IN_PROGRESS as u32 {
            let change = Change {
                end_ns: NEVER,
                ..call(1 + task, 0, 4096, 10)
            };
            writes.push(INODE, change);
            writes.push(INODE, change);
        }
        assert!(writes.are_all(INODE, 20) && writes.cut_short() == 0);
        let another = Change {
            end_ns: NEVER,
            ..call(1_000, 0, 4096, 15)
        };
        writes.push(INODE, another);
        assert!(writes.are_all(INODE, 14) && !writes.are_all(INODE, 15));
        assert_eq!(writes.cut_short(), 1);
    }

    /// A flusher writes what was appended in small parts.
    #[test]
    fn many_small_changes_are_written_out_at_once() {
        let mut writes = Writes::default();
        for at in 0..100_000 {
            writes.push(INODE, call(1, at, at + 1, at));
        }
        writes.written(INODE, (0, 100_000), 200_000, Some(ProcessId(1)));
        let (_, are_all) = writes.changers(INODE, (0, 4096), 4096, 300_000, None);
        assert!(are_all && writes.cut_short() == 0 && writes.count == 0);
    }

    #[test]
    fn more_tasks_than_are_kept_of_a_range_are_unknown() {
        let mut writes = Writes::default();
        for task in 1..1_000 {
            writes.push(INODE, call(task, 0, 4096, task.into()));
        }
        let (runs, _) = writes.changers(INODE, (0, 4096), 4096, 10_000, None);
        assert!(runs[0].1.has(ProcessId::UNKNOWN) && writes.cut_short() > 0);
    }

    /// A call may be in progress when its first half is written out: it changed that half before, and changes the second half
    /// later.
    #[test]
    fn a_call_is_cut_where_it_was_written_out() {
        let mut writes = Writes::default();
        let long = Change {
            end_ns: 1_000,
            ..call(1, 0, 8192, 10)
        };
        writes.push(INODE, long);
        let (runs, _) = writes.changers(INODE, (0, 4096), 4096, 500, None);
        assert_eq!(runs[0].1.only(), Some(ProcessId(1)));
        writes.written(INODE, (0, 4096), 500, Some(ProcessId(1)));
        writes.push(INODE, call(2, 0, 8192, 1_500));
        let (runs, are_all) = writes.changers(INODE, (0, 8192), 4096, 2_000, None);
        let certain: Vec<_> = runs
            .iter()
            .map(|(end, c)| (*end, c.certain.len()))
            .collect();
        assert_eq!((certain, are_all), (vec![(4096, 1), (8192, 2)], true));
    }

    /// f2fs writes the first page out within a call that makes the file outgrow its inode, and the call changes the page afterwards.
    #[test]
    fn a_call_that_dirties_what_it_had_written_out_changed_it_again() {
        let mut writes = Writes::default();
        let task = ProcessId(1);
        let long = Change {
            end_ns: 1_000,
            ..call(1, 500, 8192, 10)
        };
        writes.push(INODE, long);
        writes.changers(INODE, (0, 4096), 4096, 500, None);
        writes.written(INODE, (0, 4096), 500, Some(task));
        writes.push(INODE, call(2, 0, 8192, 1_500));
        let mut certain = |dirty_ns| {
            let dirtied = (task, dirty_ns);
            let (runs, _) = writes.changers(INODE, (0, 8192), 4096, 2_000, Some(dirtied));
            let blocks = runs.iter().map(|(end, changers)| {
                let tasks = changers.certain.iter().map(|by| by.process.0);
                (*end, tasks.collect::<Vec<_>>())
            });
            let blocks = blocks.collect::<Vec<_>>();
            (writes.explain(INODE, 0, 4096, dirtied), blocks)
        };
        let both = vec![(4096, vec![1, 2]), (8192, vec![1, 2])];
        assert_eq!(certain(700), (true, both));
        let (_, blocks) = certain(1_001);
        assert_eq!(blocks, [(4096, vec![2]), (8192, vec![1, 2])]);
        writes.written(INODE, (0, 8192), 2_000, None);
        assert!(writes.again.is_empty() && writes.inodes.is_empty());
    }

    /// Something was written out, and no entry says what: it may have been the first task's bytes, but not the second one's.
    #[test]
    fn changes_before_an_unseen_write_are_not_certain() {
        let mut writes = Writes::default();
        writes.push(INODE, call(1, 0, 4096, 10));
        writes.push(INODE, call(2, 0, 4096, 30));
        writes.written_unseen(20);
        let (runs, _) = writes.changers(INODE, (0, 4096), 4096, 100, None);
        let (_, changers) = &runs[0];
        assert_eq!(changers.certain[..], [ProcessId(2).into()]);
        assert_eq!(changers.possible[..], [ProcessId(1).into()]);
    }

    #[test]
    fn a_call_in_progress_may_have_changed_the_blocks_that_it_meets() {
        let mut writes = Writes::default();
        let long = Change {
            end_ns: 1_000,
            ..call(1, 5000, 13_000, 10)
        };
        writes.push(INODE, long);
        let (runs, _) = writes.changers(INODE, (0, 1 << 40), 4096, 500, None);
        let possible: Vec<_> = runs
            .iter()
            .map(|(end, c)| (*end, c.possible.len()))
            .collect();
        assert_eq!(possible, [(4096, 0), (16_384, 1), (1 << 40, 0)]);
    }
}
