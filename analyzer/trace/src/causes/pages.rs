// SPDX-License-Identifier: MIT OR Apache-2.0
//! The latest writers of each inode's pages, for whom kernel threads allocate and convert blocks.

use std::collections::VecDeque;

use super::Caller;
use super::change::Inode;
use crate::attribute::HashMap;
use crate::tally::Tally;

/// Number of inodes that are remembered; beyond it, the half that was written longest ago is forgotten.
const LIMIT: usize = 1 << 16;
/// Number of runs of one inode that are remembered: the latest ones.
const RUNS: usize = 64;

/// Pages of one writer that were submitted one after the other.
#[derive(Clone, Copy, Debug)]
struct Run {
    caller: Caller,
    /// The first and last Q, ns.
    first_q_ns: u64,
    last_q_ns: u64,
    /// The last C, ns.
    last_c_ns: u64,
}

/// The latest writers of each inode and generation.
#[derive(Default)]
pub(super) struct Pages {
    runs: HashMap<Inode, VecDeque<Run>>,
    /// Inodes with forgotten runs, and the last completion among those runs, ns.
    forgotten: HashMap<Inode, u64>,
    cut_short: usize,
}

impl Pages {
    /// Notes that pages of an inode that this thread had written were submitted at `q_ns` and completed at `c_ns`.
    pub fn written(&mut self, inode: Inode, caller: Caller, q_ns: u64, c_ns: u64) {
        if self.runs.len() >= LIMIT && !self.runs.contains_key(&inode) {
            self.forget_half();
        }
        let runs = self.runs.entry(inode).or_default();
        if let Some(last) = runs.back_mut().filter(|run| run.caller == caller) {
            last.first_q_ns = last.first_q_ns.min(q_ns);
            last.last_q_ns = last.last_q_ns.max(q_ns);
            last.last_c_ns = last.last_c_ns.max(c_ns);
            return;
        }
        let oldest = (runs.len() >= RUNS).then(|| runs.pop_front()).flatten();
        runs.push_back(Run {
            caller,
            first_q_ns: q_ns,
            last_q_ns: q_ns,
            last_c_ns: c_ns,
        });
        if let Some(oldest) = oldest {
            self.forget(inode, oldest.last_c_ns);
        }
    }

    /// Returns true if pages may be missing that were completed at `from_ns` or later.
    pub fn forgot(&self, inode: Inode, from_ns: u64) -> bool {
        let last_ns = self.forgotten.get(&inode);
        last_ns.is_some_and(|&last_ns| from_ns <= last_ns)
    }

    /// Returns the number of runs for which there was no room.
    pub fn cut_short(&self) -> usize {
        self.cut_short
    }

    /// Returns the writers of the pages that were submitted from `from_ns` to `to_ns`, and of the next ones. ext4 submits the
    /// last pages of a handle right after the handle's end (`ext4_writepages`).
    pub fn submitted(
        &self,
        inode: Inode,
        from_ns: u64,
        to_ns: u64,
    ) -> impl Iterator<Item = Caller> {
        let runs = self.of(inode);
        let next = runs.clone().filter(move |run| run.last_q_ns > to_ns);
        let next = next.min_by_key(|run| run.first_q_ns);
        let within = runs.filter(move |run| run.first_q_ns <= to_ns && from_ns <= run.last_q_ns);
        within.chain(next).map(|run| run.caller)
    }

    /// Returns the writers of the pages that were completed from `from_ns` to `to_ns`.
    pub fn completed(
        &self,
        inode: Inode,
        from_ns: u64,
        to_ns: u64,
    ) -> impl Iterator<Item = Caller> {
        let runs = self.of(inode);
        runs.filter(move |run| run.first_q_ns <= to_ns && from_ns <= run.last_c_ns)
            .map(|run| run.caller)
    }

    fn of(&self, inode: Inode) -> impl Iterator<Item = &Run> + Clone {
        self.runs.get(&inode).into_iter().flatten()
    }

    fn forget(&mut self, inode: Inode, last_c_ns: u64) {
        let last_ns = self.forgotten.entry(inode).or_default();
        *last_ns = last_c_ns.max(*last_ns);
        self.cut_short.tally(1);
    }

    fn forget_half(&mut self) {
        let latest = |runs: &VecDeque<Run>| runs.iter().map(|run| run.last_q_ns).max().unwrap_or(0);
        let mut times: Vec<u64> = self.runs.values().map(latest).collect();
        let middle = times.len() / 2;
        let (_, &mut median, _) = times.select_nth_unstable(middle);
        let old = |_: &Inode, runs: &mut VecDeque<Run>| latest(runs) <= median;
        let old: Vec<_> = self.runs.extract_if(old).collect();
        for (inode, runs) in old {
            let last_c_ns = runs.iter().map(|run| run.last_c_ns).max();
            self.forget(inode, last_c_ns.unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::ProcessId;

    const INODE: Inode = (12, 1);

    #[test]
    fn runs_that_are_forgotten_are_missing_until_later_ones_are_asked_for() {
        let mut pages = Pages::default();
        let writes = 2 * RUNS as u64;
        for at in 1..=writes {
            let task = ProcessId(1 + (at % 2) as u32);
            pages.written(INODE, task.into(), 10 * at, 10 * at + 5);
        }
        assert_eq!(pages.cut_short(), RUNS);
        let forgotten = 10 * RUNS as u64 + 5;
        assert!(pages.forgot(INODE, forgotten) && !pages.forgot(INODE, forgotten + 1));
    }

    #[test]
    fn inodes_that_are_forgotten_may_have_had_any_writer() {
        let mut pages = Pages::default();
        for at in 0..=LIMIT as u64 {
            pages.written((at, 1), ProcessId(1).into(), 10 * at, 10 * at + 5);
        }
        assert!(pages.forgot((0, 1), 5) && !pages.forgot((0, 1), 6));
        assert!(!pages.forgot((LIMIT as u64, 1), 0) && pages.cut_short() > LIMIT / 2);
    }
}
