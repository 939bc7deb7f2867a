// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ranges of one file that calls have changed since they were last written out, and the tasks that made the calls.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::Caller;
use super::change::{Act, Change};
use crate::attribute::ProcessId;
use crate::tally::Tally;

/// The largest folio of the page cache: one entry of a page middle directory, bytes.
const LARGEST_FOLIO: u64 = 2 << 20;

/// Number of ranges that one call or row may touch, and of tasks that are known of one range; beyond it, the answer is unknown.
/// A recording may come from anybody, and the work for each of its entries must be bounded.
const TOUCHED: usize = 1 << 12;
const TASKS: usize = 1 << 6;

/// The tasks that changed a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changers {
    /// The tasks that had changed it, the first one first.
    pub certain: SmallVec<[Caller; 1]>,
    /// Further tasks that may have changed it: their calls were in progress when the block was written.
    pub possible: SmallVec<[Caller; 1]>,
}

impl Changers {
    fn add_certain(&mut self, caller: Caller) {
        self.possible.retain(|other| *other != caller);
        if !self.certain.contains(&caller) {
            self.certain.push(caller);
        }
    }

    /// Adds a task that had changed the block before all others.
    pub fn add_first(&mut self, caller: Caller) {
        self.possible.retain(|other| *other != caller);
        self.certain.retain(|other| *other != caller);
        self.certain.insert(0, caller);
    }

    /// Adds tasks whose calls may have changed the block.
    pub fn add_possible(&mut self, callers: impl Iterator<Item = Caller>) {
        for caller in callers {
            if !self.certain.contains(&caller) && !self.possible.contains(&caller) {
                self.possible.push(caller);
            }
        }
    }

    /// Returns the tasks that had changed the block, then those that may have.
    pub fn all(&self) -> impl Iterator<Item = Caller> {
        self.certain.iter().chain(&self.possible).copied()
    }

    /// Returns true if no task is known.
    pub fn is_empty(&self) -> bool {
        self.certain.is_empty() && self.possible.is_empty()
    }

    /// Returns true if the task had changed the block or may have.
    pub fn has(&self, process: ProcessId) -> bool {
        self.all().any(|other| other.process == process)
    }

    /// Returns the task if there is only one, whatever its stacks.
    pub fn only(&self) -> Option<ProcessId> {
        let mut all = self.all().map(|caller| caller.process);
        let first = all.next()?;
        all.all(|other| other == first).then_some(first)
    }
}

/// The calls of one task that changed a range.
#[derive(Clone, Copy, Debug)]
struct Changer {
    caller: Caller,
    first_start_ns: u64,
    first_end_ns: u64,
    last_end_ns: u64,
    is_doubtful: bool,
}

/// A range up to `to`.
#[derive(Clone, Debug)]
struct Range {
    to: u64,
    /// In the order in which their first calls returned.
    changers: SmallVec<[Changer; 1]>,
}

/// The changed ranges of a file, by their first byte. They are disjoint, and none is empty.
#[derive(Debug, Default)]
pub(super) struct Changed {
    ranges: BTreeMap<u64, Range>,
    /// Number of tasks of all ranges.
    len: usize,
    /// Number of ranges and tasks that were forgotten.
    cut_short: usize,
}

impl Changed {
    /// Returns the number of what is kept: each task of each range.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns how much was forgotten since this was asked last.
    pub fn take_cut_short(&mut self) -> usize {
        std::mem::take(&mut self.cut_short)
    }

    /// Enters a call that has returned. Returns false if it touches too many ranges: then all are forgotten.
    #[must_use]
    pub fn enter(&mut self, change: &Change) -> bool {
        let (from, to) = (change.from, change.to);
        if change.act == Act::Dropped {
            // Calls are entered in the order of their returns, so everything there is older. Only whole tails are dropped.
            self.cut(from);
            let dropped = self.ranges.split_off(&from);
            let dropped = dropped.values().map(|range| range.changers.len());
            self.len = self.len.saturating_sub(dropped.sum());
            return true;
        }
        let touched = self.ranges.range(from..to.max(from));
        if touched.take(TOUCHED.saturating_add(1)).count() > TOUCHED {
            self.forget_all();
            return false;
        }
        self.cut(from);
        self.cut(to);
        let mut at = from;
        let mut gaps: SmallVec<[(u64, u64); 1]> = SmallVec::new();
        for (&begin, range) in self.ranges.range_mut(from..to.max(from)) {
            if at < begin {
                gaps.push((at, begin));
            }
            let before = range.changers.len();
            let is_named = range.add(change);
            self.cut_short.tally(usize::from(!is_named));
            self.len.tally(range.changers.len().saturating_sub(before));
            at = range.to;
        }
        if at < to {
            gaps.push((at, to));
        }
        for (begin, to) in gaps {
            let mut range = Range {
                to,
                changers: SmallVec::new(),
            };
            range.add(change);
            self.len.tally(range.changers.len());
            self.ranges.insert(begin, range);
        }
        true
    }

    fn forget_all(&mut self) {
        self.cut_short.tally(self.ranges.len());
        self.ranges.clear();
        self.len = 0;
    }

    /// Returns who had changed the block of `block` bytes that holds byte `at`, and the end of the blocks that the same tasks
    /// had changed, at most `to`. Changes up to `unsure_ns` may have been written out already.
    pub fn run(&self, at: u64, to: u64, block: u64, q_ns: u64, unsure_ns: u64) -> (u64, Changers) {
        let block = block.max(1);
        let begin = at.saturating_sub(at.checked_rem(block).unwrap_or(0));
        let end = begin.saturating_add(block);
        let mut changers = Changers::default();
        let mut run_end = end;
        let reaching = self.ranges.range(..begin).next_back();
        let reaching = reaching.filter(|(_, range)| range.to > begin);
        let ranges = reaching.into_iter().chain(self.ranges.range(begin..end));
        for (nth, (&from, range)) in ranges.enumerate() {
            if nth >= TOUCHED {
                changers.add_possible(std::iter::once(Caller::UNKNOWN));
                break;
            }
            range.tell(q_ns, unsure_ns, &mut changers);
            // Further whole blocks of a range have the same answer.
            if from <= begin {
                let rest = range.to.checked_rem(block).unwrap_or(0);
                run_end = run_end.max(range.to.saturating_sub(rest));
            }
        }
        // Nor were the blocks changed that lie ahead of the next range.
        if changers.is_empty() {
            let next = self
                .ranges
                .range(end..)
                .next()
                .map_or(to, |(&from, _)| from);
            let rest = next.checked_rem(block).unwrap_or(0);
            let next = if next == to {
                to
            } else {
                next.saturating_sub(rest)
            };
            run_end = run_end.max(next);
        }
        (run_end.min(to), changers)
    }

    /// Forgets the changes to `from..to` that were made by `time_ns`. Returns false if later ones are left in too many ranges: then
    /// all are forgotten.
    #[must_use]
    pub fn forget(&mut self, from: u64, to: u64, time_ns: u64) -> bool {
        self.cut(from);
        self.cut(to);
        let mut empty: SmallVec<[u64; 1]> = SmallVec::new();
        let mut left = 0usize;
        for (&begin, range) in self.ranges.range_mut(from..to.max(from)) {
            let before = range.changers.len();
            range
                .changers
                .retain(|changer| changer.goes_on_after(time_ns));
            let gone = before.saturating_sub(range.changers.len());
            self.len = self.len.saturating_sub(gone);
            match range.changers.is_empty() {
                true => empty.push(begin),
                false => left.tally(1),
            }
            if left > TOUCHED {
                self.forget_all();
                return false;
            }
        }
        for begin in empty {
            self.ranges.remove(&begin);
        }
        true
    }

    /// Returns true if a call of the task near byte `at` was in progress at `time_ns`; one folio may hold both places.
    pub fn has_call(&self, at: u64, process: ProcessId, time_ns: u64) -> bool {
        let (first, last) = (
            at.saturating_sub(LARGEST_FOLIO),
            at.saturating_add(LARGEST_FOLIO),
        );
        let reaching = self.ranges.range(..first).next_back();
        let near = reaching.into_iter().chain(self.ranges.range(first..last));
        let mut changers = near.take(TOUCHED).flat_map(|(_, range)| &range.changers);
        changers.any(|changer| {
            let span = changer.first_start_ns..=changer.last_end_ns;
            changer.caller.process == process && span.contains(&time_ns)
        })
    }

    /// Cuts the range that lies on both sides of `at` in two.
    fn cut(&mut self, at: u64) {
        let across = self.ranges.range_mut(..at).next_back();
        if let Some((_, range)) = across.filter(|(_, range)| at < range.to) {
            let behind = range.clone();
            range.to = at;
            self.len.tally(behind.changers.len());
            self.ranges.insert(at, behind);
        }
    }
}

impl Range {
    /// Adds a call; returns false if there is no room for its task, which is unknown then.
    fn add(&mut self, change: &Change) -> bool {
        let caller = match self.changers.len() {
            few if few < TASKS => change.caller,
            _ => Caller::UNKNOWN,
        };
        let same = |changer: &&mut Changer| [caller, change.caller].contains(&changer.caller);
        if let Some(changer) = self.changers.iter_mut().find(same) {
            changer.last_end_ns = changer.last_end_ns.max(change.end_ns);
            changer.is_doubtful &= change.act == Act::MayHaveChanged;
            return changer.caller == change.caller;
        }
        self.changers.push(Changer {
            caller,
            first_start_ns: change.start_ns,
            first_end_ns: change.end_ns,
            last_end_ns: change.end_ns,
            is_doubtful: change.act == Act::MayHaveChanged,
        });
        caller == change.caller
    }

    /// Adds the tasks that had changed the range by `q_ns`; of those whose last change is not after `unsure_ns`, it is not certain.
    fn tell(&self, q_ns: u64, unsure_ns: u64, changers: &mut Changers) {
        for changer in self.changers.iter().filter(|c| c.first_start_ns <= q_ns) {
            let is_there = changer.last_end_ns > unsure_ns && !changer.is_doubtful;
            match changer.first_end_ns <= q_ns && is_there {
                true => changers.add_certain(changer.caller),
                false => changers.add_possible(std::iter::once(changer.caller)),
            }
        }
    }
}

impl Changer {
    /// Forgets the calls up to `time_ns`; returns false if there are no later ones.
    fn goes_on_after(&mut self, time_ns: u64) -> bool {
        if self.last_end_ns <= time_ns {
            return false;
        }
        if self.first_end_ns <= time_ns {
            self.first_start_ns = time_ns;
            self.first_end_ns = self.last_end_ns;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::writes::Writes;
    use super::*;

    const BLOCK: u64 = 16;
    const BYTES: u64 = 8 * BLOCK;
    const INODE: (u64, u32) = (12, 1);

    /// A call of one of three tasks, or a range that is written out; each takes one moment.
    fn step() -> impl Strategy<Value = (u32, u64, u64)> {
        (0u32..4, 0..BYTES, 1..3 * BLOCK)
    }

    proptest! {
        /// Every byte of a block that is written out has the tasks that a list of all calls gives it.
        #[test]
        fn each_block_has_those_who_changed_it(steps in prop::collection::vec(step(), 1..60)) {
            let mut writes = Writes::default();
            let mut blocks: Vec<Vec<ProcessId>> = vec![Vec::new(); (BYTES / BLOCK) as usize];
            for (at, &(task, from, length)) in steps.iter().enumerate() {
                let (time_ns, process) = (10 + 10 * at as u64, ProcessId(task));
                let to = (from + length).min(BYTES);
                let touched = (from / BLOCK) as usize..to.div_ceil(BLOCK) as usize;
                if task > 0 {
                    let change = Change {
                        act: Act::Changed,
                        caller: process.into(),
                        from,
                        to,
                        start_ns: time_ns - 5,
                        end_ns: time_ns - 1,
                    };
                    writes.push(INODE, change);
                    for block in &mut blocks[touched] {
                        if !block.contains(&process) {
                            block.push(process);
                        }
                    }
                    continue;
                }
                // Whole blocks are written.
                let range = (touched.start as u64 * BLOCK, touched.end as u64 * BLOCK);
                let (runs, _) = writes.changers(INODE, range, BLOCK, time_ns, None);
                let mut begin = range.0;
                for (end, changers) in runs {
                    for at in begin / BLOCK..end / BLOCK {
                        let mut told: Vec<_> = changers.all().map(|caller| caller.process).collect();
                        let mut known = std::mem::take(&mut blocks[at as usize]);
                        told.sort();
                        known.sort();
                        prop_assert_eq!(told, known, "block {}", at);
                        prop_assert!(changers.possible.is_empty());
                    }
                    begin = end;
                }
                prop_assert_eq!(begin, range.1);
                writes.written(INODE, range, time_ns, None);
            }
        }
    }
}
