// SPDX-License-Identifier: MIT OR Apache-2.0
//! The latest writers of each inode's pages, for whom kernel threads allocate and convert blocks.

use std::collections::VecDeque;

use super::Caller;
use crate::attribute::HashMap;

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
    runs: HashMap<(u64, u32), VecDeque<Run>>,
}

impl Pages {
    /// Notes that pages of an inode that this thread had written were submitted at `q_ns` and completed at `c_ns`.
    pub fn written(&mut self, inode: (u64, u32), caller: Caller, q_ns: u64, c_ns: u64) {
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
        if runs.len() >= RUNS {
            runs.pop_front();
        }
        runs.push_back(Run {
            caller,
            first_q_ns: q_ns,
            last_q_ns: q_ns,
            last_c_ns: c_ns,
        });
    }

    /// Returns the writers of the pages that were submitted from `from_ns` to `to_ns`, and of the next ones: ext4 submits the
    /// last pages for which a handle allocated blocks right after the handle's end (`ext4_writepages`).
    pub fn submitted(
        &self,
        inode: (u64, u32),
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
        inode: (u64, u32),
        from_ns: u64,
        to_ns: u64,
    ) -> impl Iterator<Item = Caller> {
        let runs = self.of(inode);
        runs.filter(move |run| run.first_q_ns <= to_ns && from_ns <= run.last_c_ns)
            .map(|run| run.caller)
    }

    fn of(&self, inode: (u64, u32)) -> impl Iterator<Item = &Run> + Clone {
        self.runs.get(&inode).into_iter().flatten()
    }

    fn forget_half(&mut self) {
        let latest = |runs: &VecDeque<Run>| runs.iter().map(|run| run.last_q_ns).max().unwrap_or(0);
        let mut times: Vec<u64> = self.runs.values().map(latest).collect();
        let middle = times.len() / 2;
        let (_, &mut median, _) = times.select_nth_unstable(middle);
        self.runs.retain(|_, runs| latest(runs) > median);
    }
}
