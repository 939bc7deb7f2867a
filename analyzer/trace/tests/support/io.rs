// SPDX-License-Identifier: MIT OR Apache-2.0
//! One IO of the simulated block layer: its bios, and its events.

use mostrace_trace::blktrace::Part;
use std::collections::VecDeque;

/// An event of an IO.
#[derive(Clone, Debug)]
pub enum Step {
    /// Any event that only the trace has, with `bytes` and `sector` as given.
    Trace(u64, u64, u32, Vec<u8>),
    Queue(usize),
    GetRequest(usize),
    Insert,
    Issue,
    /// Completes this many of the remaining bytes.
    Complete(u32),
    /// D and C of the flush machinery's own request.
    FlushIssue,
    FlushComplete,
    /// The completion of 0 bytes.
    End,
}

/// An IO: its bios in sector order, and the steps that remain.
pub struct Io {
    pub op: u64,
    pub pid: u32,
    pub cpu: u32,
    pub parts: Vec<Part>,
    pub g_ns: Option<u64>,
    pub i_ns: Option<u64>,
    pub d_ns: Option<u64>,
    pub flush_d_ns: Option<u64>,
    /// True if it begins where the request of the same direction issued before it ended; set when it was last issued.
    pub sequential: bool,
    /// Number of bytes completed so far.
    pub done: u32,
    /// True if it waits for something of which there is only one.
    pub single: bool,
    pub steps: VecDeque<(u64, Step)>,
}

impl Io {
    pub fn then(&mut self, delay: u64, step: Step) -> &mut Self {
        self.steps.push_back((delay, step));
        self
    }

    /// Returns true for a split bio: its Q was traced whole, and each piece is a request.
    pub fn is_split(&self) -> bool {
        self.parts.len() > 1 && self.parts.iter().all(|p| p.bytes == 65_536)
    }

    pub fn piece(&self) -> Option<Part> {
        let done = self.done as usize / 65_536;
        self.is_split()
            .then(|| self.parts[done.min(self.parts.len() - 1)])
    }

    pub fn queue_all(&mut self, now: u64) {
        for part in &mut self.parts {
            part.q_ns = Some(now);
            part.q_cpu = Some(self.cpu);
            part.pid = Some(self.pid);
        }
    }

    /// Returns the parts of the next `bytes` bytes.
    pub fn complete(&mut self, bytes: u32) -> Vec<Part> {
        let (from, to) = (self.done, self.done + bytes);
        self.done = to;
        let mut start = 0;
        let mut covered = Vec::new();
        for part in &self.parts {
            let (a, b) = (from.max(start), to.min(start + part.bytes));
            if a < b {
                covered.push(Part {
                    sector: part.sector + u64::from((a - start) / 512),
                    bytes: b - a,
                    ..*part
                });
            }
            start += part.bytes;
        }
        covered
    }
}
