// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls that changed the contents of files since these were last written out.
//!
//! The kernel tells who made a folio dirty that was clean. It does not tell who changes the folio afterwards, nor who changes
//! another block of a large one. The calls do: each has its range of the file, its task, its beginning and its end.

use std::collections::VecDeque;

use super::changed::{Changed, Changers};
use super::tables::LONGEST_CALL_NS;
use crate::attribute::{HashMap, HashSet, ProcessId};
use crate::tally::Tally;

/// Most calls and ranges that are kept; beyond it, all are forgotten.
const LIMIT: usize = 1 << 19;
/// Number of calls that are searched for those in progress at a time.
const SEARCHED: usize = 1 << 12;
/// Number of calls in progress at one time that are returned for a file.
const IN_PROGRESS: usize = 64;
/// Number of dirtyings of each inode that are remembered as explained.
const EXPLAINED: usize = 8;

/// Inode and generation.
pub(super) type Inode = (u64, u32);

/// The effect of a call on a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// It changed the bytes.
    Changed,
    /// It may have changed them, or only a part of it may not be written out yet.
    MayHaveChanged,
    /// It dropped them: earlier changes are not written out.
    Dropped,
}

/// A call that changed or dropped bytes `from..to` of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub act: Act,
    pub process: ProcessId,
    pub from: u64,
    pub to: u64,
    pub start_ns: u64,
    pub end_ns: u64,
}

impl Change {
    /// Returns true if the call was in progress at `time_ns`.
    fn is_at(&self, time_ns: u64) -> bool {
        (self.start_ns..self.end_ns).contains(&time_ns)
    }

    fn meets(&self, from: u64, to: u64) -> bool {
        self.from < to && from < self.to
    }

    /// Returns what is left of the call without `from..to`.
    fn without(self, from: u64, to: u64) -> impl Iterator<Item = Change> {
        let ahead = Change {
            to: self.to.min(from),
            ..self
        };
        let behind = Change {
            from: self.from.max(to),
            ..self
        };
        [ahead, behind].into_iter().filter(|c| c.from < c.to)
    }
}

/// The changes to the contents of all files that are not written out yet.
#[derive(Default)]
pub(super) struct Writes {
    inodes: HashMap<Inode, OfInode>,
    count: usize,
    /// Inodes of which calls were forgotten.
    forgotten: HashSet<Inode>,
    /// Changes up to this time may have been written out, because something unknown was.
    unsure_ns: u64,
}

#[derive(Default)]
struct OfInode {
    /// Calls that are not entered into `changed` yet, in the order of their returns.
    ahead: VecDeque<Change>,
    /// The length of the longest call, ns.
    longest_ns: u64,
    changed: Changed,
    /// True if ranges of it were forgotten, so that there may be unknown changes.
    is_partial: bool,
    /// Tasks, and times when they made a page dirty within a known call.
    explained: VecDeque<(ProcessId, u64)>,
    /// The time of the first shared, writable mapping: stores to it are not seen.
    mapped_ns: Option<u64>,
}

impl Writes {
    /// Notes a call. Calls come almost in the order of their returns, and may come ahead of the trace's time.
    pub fn push(&mut self, inode: Inode, change: Change) {
        if self.count >= LIMIT {
            self.forgotten.extend(self.inodes.keys());
            self.inodes.clear();
            self.count = 0;
        }
        let length_ns = change.end_ns.saturating_sub(change.start_ns);
        let is_too_long = length_ns >= LONGEST_CALL_NS && change.act == Act::Changed;
        let change = Change {
            act: if is_too_long {
                Act::MayHaveChanged
            } else {
                change.act
            },
            ..change
        };
        self.count.tally(1);
        let of = self.inodes.entry(inode).or_default();
        of.longest_ns = of.longest_ns.max(length_ns);
        let after = of.ahead.partition_point(|c| c.end_ns <= change.end_ns);
        of.ahead.insert(after, change);
    }

    /// Notes that there is a change to a file whose place is not known.
    pub fn lose(&mut self, inode: Inode) {
        self.forgotten.insert(inode);
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
        !self.forgotten.contains(&inode) && mapped_ns.is_none_or(|mapped_ns| time_ns < mapped_ns)
    }

    /// Returns the tasks that had changed bytes `from..to` by `q_ns`, in runs of blocks of `block` bytes with the same
    /// answer: the end of each run, and the tasks. False if there may be more: too many calls were made at that time.
    pub fn changers(
        &mut self,
        inode: Inode,
        (from, to): (u64, u64),
        block: u64,
        q_ns: u64,
    ) -> (Vec<(u64, Changers)>, bool) {
        let unsure_ns = self.unsure_ns;
        self.with(inode, |of| of.changers((from, to), block, q_ns, unsure_ns))
            .unwrap_or_else(|| (vec![(to, Changers::default())], true))
    }

    /// Notes that bytes `from..to` were written out as they were at `q_ns`. `by` is the only task that had changed them, if
    /// there is only one.
    pub fn written(&mut self, inode: Inode, range: (u64, u64), q_ns: u64, by: Option<ProcessId>) {
        self.with(inode, |of| of.written(range, q_ns, by));
        self.drop_if_unused(inode);
    }

    /// Notes that a task was in a call at `q_ns` and itself wrote to the device what the call passed.
    pub fn written_directly(&mut self, inode: Inode, process: ProcessId, q_ns: u64) {
        self.with(inode, |of| {
            of.ahead
                .retain(|change| change.process != process || !change.is_at(q_ns));
        });
    }

    /// Returns true if a task made a page near byte `at` dirty at `dirty_ns` within a call that is known.
    pub fn explain(&mut self, inode: Inode, at: u64, process: ProcessId, dirty_ns: u64) -> bool {
        self.with(inode, |of| of.explain(at, process, dirty_ns))
            .unwrap_or(false)
    }

    /// Does something with what is known of an inode; None if nothing is.
    fn with<T>(&mut self, inode: Inode, act: impl FnOnce(&mut OfInode) -> T) -> Option<T> {
        let of = self.inodes.get_mut(&inode)?;
        let before = of.size();
        let result = act(of);
        self.count = self.count.saturating_sub(before);
        self.count.tally(of.size());
        Some(result)
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

/// Returns the end of the blocks from byte `at` on in which the same of these calls meet: where one of them begins or ends,
/// the next block may have another answer.
fn same_until(calls: &[Change], at: u64, block: u64) -> u64 {
    let first = behind_block(at, block);
    let edges = calls.iter().flat_map(|call| [call.from, call.to]);
    let edges = edges.filter(|edge| *edge > at);
    let begins = edges.map(|edge| edge.saturating_sub(edge.checked_rem(block).unwrap_or(0)));
    begins.min().map_or(first, |begin| begin.max(first))
}

impl OfInode {
    fn size(&self) -> usize {
        self.ahead.len().saturating_add(self.changed.len())
    }

    /// Enters the calls that returned by `time_ns`.
    fn enter(&mut self, time_ns: u64) {
        while let Some(change) = self.ahead.pop_front() {
            if change.end_ns > time_ns {
                self.ahead.push_front(change);
                return;
            }
            self.is_partial |= !self.changed.enter(&change);
        }
    }

    fn changers(
        &mut self,
        (from, to): (u64, u64),
        block: u64,
        q_ns: u64,
        unsure_ns: u64,
    ) -> (Vec<(u64, Changers)>, bool) {
        self.enter(q_ns);
        let in_progress = self.in_progress(q_ns).take(IN_PROGRESS).copied();
        let in_progress: Vec<Change> = in_progress.collect();
        let are_all = !self.is_partial
            && in_progress.len() < IN_PROGRESS
            && self.near(q_ns).nth(SEARCHED).is_none();
        let mut runs: Vec<(u64, Changers)> = Vec::new();
        let mut at = from;
        while at < to {
            let (mut end, mut changers) = self.changed.run(at, to, block, q_ns, unsure_ns);
            if in_progress.iter().any(|change| change.meets(at, end)) {
                end = end.min(same_until(&in_progress, at, block));
                let near = in_progress.iter().filter(|change| change.meets(at, end));
                changers.add_possible(near.map(|change| change.process));
            }
            match runs.last_mut() {
                Some(last) if last.1 == changers => last.0 = end,
                _ => runs.push((end, changers)),
            }
            at = end;
        }
        (runs, are_all)
    }

    fn written(&mut self, (from, to): (u64, u64), q_ns: u64, by: Option<ProcessId>) {
        self.enter(q_ns);
        self.is_partial |= !self.changed.forget(from, to, q_ns);
        let is_meant = |c: &Change| c.act != Act::Dropped && c.is_at(q_ns) && c.meets(from, to);
        let searched = self.near(q_ns).take(SEARCHED).count();
        for at in (0..searched).rev() {
            let Some(change) = self.ahead.get(at).copied().filter(is_meant) else {
                continue;
            };
            // The only task that changed these bytes had done so already.
            if by == Some(change.process) {
                self.ahead.remove(at);
                for left in change.without(from, to) {
                    self.ahead.insert(at, left);
                }
            } else if let Some(change) = self.ahead.get_mut(at) {
                change.act = Act::MayHaveChanged;
            }
        }
    }

    /// Returns the calls that were in progress at `time_ns`, as far as they are searched.
    fn in_progress(&self, time_ns: u64) -> impl Iterator<Item = &Change> {
        self.near(time_ns)
            .take(SEARCHED)
            .filter(move |change| change.is_at(time_ns) && change.act != Act::Dropped)
    }

    /// Returns the calls that ended so soon after `time_ns` that they may have been in progress then.
    fn near(&self, time_ns: u64) -> impl Iterator<Item = &Change> {
        let latest_ns = time_ns.saturating_add(self.longest_ns);
        let ahead = self.ahead.iter();
        ahead.take_while(move |change| change.end_ns <= latest_ns)
    }

    fn explain(&mut self, at: u64, process: ProcessId, dirty_ns: u64) -> bool {
        if self.explained.contains(&(process, dirty_ns)) {
            return true;
        }
        let is_ahead = self
            .in_progress(dirty_ns)
            .any(|change| change.process == process);
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
            process: ProcessId(task),
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
        let (_, are_all) = writes.changers(INODE, (0, 4096), 4096, 300_000);
        assert!(!are_all);
    }

    #[test]
    fn more_tasks_than_are_kept_of_a_range_are_unknown() {
        let mut writes = Writes::default();
        for task in 1..1_000 {
            writes.push(INODE, call(task, 0, 4096, task.into()));
        }
        let (runs, _) = writes.changers(INODE, (0, 4096), 4096, 10_000);
        assert!(runs[0].1.has(ProcessId::UNKNOWN));
    }

    /// A call that was in progress when its first half was written out changed that half before, and the second half later.
    #[test]
    fn a_call_is_cut_where_it_was_written_out() {
        let mut writes = Writes::default();
        let long = Change {
            end_ns: 1_000,
            ..call(1, 0, 8192, 10)
        };
        writes.push(INODE, long);
        let (runs, _) = writes.changers(INODE, (0, 4096), 4096, 500);
        assert_eq!(runs[0].1.only(), Some(ProcessId(1)));
        writes.written(INODE, (0, 4096), 500, Some(ProcessId(1)));
        writes.push(INODE, call(2, 0, 8192, 1_500));
        let (runs, are_all) = writes.changers(INODE, (0, 8192), 4096, 2_000);
        let certain: Vec<_> = runs
            .iter()
            .map(|(end, c)| (*end, c.certain.len()))
            .collect();
        assert_eq!((certain, are_all), (vec![(4096, 1), (8192, 2)], true));
    }

    /// Something was written out, and no entry says what: it may have been the first task's bytes, but not the second one's.
    #[test]
    fn changes_before_an_unseen_write_are_not_certain() {
        let mut writes = Writes::default();
        writes.push(INODE, call(1, 0, 4096, 10));
        writes.push(INODE, call(2, 0, 4096, 30));
        writes.written_unseen(20);
        let (runs, _) = writes.changers(INODE, (0, 4096), 4096, 100);
        let (_, changers) = &runs[0];
        assert_eq!(changers.certain, [ProcessId(2)]);
        assert_eq!(changers.possible, [ProcessId(1)]);
    }

    #[test]
    fn a_call_in_progress_may_have_changed_the_blocks_that_it_meets() {
        let mut writes = Writes::default();
        let long = Change {
            end_ns: 1_000,
            ..call(1, 5000, 13_000, 10)
        };
        writes.push(INODE, long);
        let (runs, _) = writes.changers(INODE, (0, 1 << 40), 4096, 500);
        let possible: Vec<_> = runs
            .iter()
            .map(|(end, c)| (*end, c.possible.len()))
            .collect();
        assert_eq!(possible, [(4096, 0), (16_384, 1), (1 << 40, 0)]);
    }
}
