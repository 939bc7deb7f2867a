// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entries of empty flushes, which have no sectors to be found by.

use std::collections::VecDeque;

use mostrace_bundle::entry::RawProcess;

use super::note::Note;

/// How far the two records of one Q may lie apart, ns: the thread may be preempted in between, and it
/// waits for each of its flushes.
const SLACK_NS: u64 = 20_000_000;
/// More empty flushes than can be under way at a time.
const LIMIT: usize = 4096;

struct Empty {
    submit_ns: u64,
    pid: u32,
    note: Note,
}

/// Empty flushes that wait for their completion, oldest first.
#[derive(Default)]
pub(super) struct Empties {
    waiting: VecDeque<Empty>,
    dropped: u64,
}

impl Empties {
    pub fn insert(&mut self, raw: &RawProcess, note: Note) {
        // Made at Q: where the submission's own time is missing, the entry's is the same.
        let submit_ns = match raw.submit_ns.get() {
            0 => raw.head.time_ns.get(),
            ns => ns,
        };
        if self.waiting.len() >= LIMIT {
            self.waiting.pop_front();
            self.dropped += 1;
        }
        self.waiting.push_back(Empty {
            submit_ns,
            pid: raw.pid.get(),
            note,
        });
    }

    /// The entry of the flush that `pid` queued at `q_ns`.
    pub fn take(&mut self, q_ns: Option<u64>, pid: Option<u32>) -> Option<Note> {
        let (q_ns, pid) = (q_ns?, pid?);
        let (at, _) = self
            .waiting
            .iter()
            .enumerate()
            .filter(|(_, e)| e.pid == pid && e.submit_ns.abs_diff(q_ns) <= SLACK_NS)
            .min_by_key(|(_, e)| e.submit_ns.abs_diff(q_ns))?;
        self.waiting.remove(at).map(|e| e.note)
    }

    /// Entries that no completion came for.
    pub fn left(&self) -> u64 {
        self.dropped + self.waiting.len() as u64
    }
}
