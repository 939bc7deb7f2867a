// SPDX-License-Identifier: MIT OR Apache-2.0
//! The latest writers of each inode's pages, whose blocks the flusher allocates.

use crate::attribute::{HashMap, ProcessId};

/// Number of inodes that are remembered; beyond it, the half that was written longest ago is forgotten.
const LIMIT: usize = 1 << 16;
/// Number of writers of one inode that are remembered: the latest ones.
const WRITERS: usize = 64;

/// A thread that wrote pages, and the Q of the last such pages, ns.
#[derive(Clone, Copy, Debug)]
struct Writer {
    process: ProcessId,
    q_ns: u64,
}

/// The latest writers of each inode and generation.
#[derive(Default)]
pub(super) struct Pages {
    writers: HashMap<(u64, u32), Vec<Writer>>,
}

impl Pages {
    /// Notes that pages of an inode that this thread had written were submitted at `q_ns`.
    pub fn written(&mut self, inode: (u64, u32), process: ProcessId, q_ns: u64) {
        if self.writers.len() >= LIMIT && !self.writers.contains_key(&inode) {
            self.forget_half();
        }
        let writers = self.writers.entry(inode).or_default();
        let before = writers.iter().position(|w| w.process == process);
        let before = before.map(|at| writers.remove(at).q_ns);
        if writers.len() >= WRITERS {
            writers.remove(0);
        }
        let q_ns = before.map_or(q_ns, |before| before.max(q_ns));
        writers.push(Writer { process, q_ns });
    }

    /// Returns the writers of pages that were submitted at `from_ns` or later.
    pub fn since(&self, inode: (u64, u32), from_ns: u64) -> impl Iterator<Item = ProcessId> {
        let writers = self.writers.get(&inode).map_or(&[][..], Vec::as_slice);
        let later = writers.iter().filter(move |w| w.q_ns >= from_ns);
        later.map(|w| w.process)
    }

    /// Returns the writer of the pages that were submitted last.
    pub fn last(&self, inode: (u64, u32)) -> Option<ProcessId> {
        self.writers.get(&inode)?.last().map(|w| w.process)
    }

    fn forget_half(&mut self) {
        let latest = |writers: &Vec<Writer>| writers.iter().map(|w| w.q_ns).max().unwrap_or(0);
        let mut times: Vec<u64> = self.writers.values().map(latest).collect();
        let middle = times.len() / 2;
        let (_, &mut median, _) = times.select_nth_unstable(middle);
        self.writers.retain(|_, writers| latest(writers) > median);
    }
}
