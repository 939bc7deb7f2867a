// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts the events of several CPUs, whose buffers are read one after the other, in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The most events that wait; a CPU's buffer has fewer.
const WAITING: usize = 1 << 17;

/// An event that was read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Waiting {
    pub time_ns: u64,
    /// Its place in the file.
    pub place: u64,
    pub cpu: u32,
    pub thread: u32,
    /// The field of FtraceEvent that it is.
    pub number: u32,
    pub message: Box<[u8]>,
}

#[derive(Default)]
pub(super) struct Order {
    waiting: BinaryHeap<Reverse<Waiting>>,
    last_ns: u64,
    /// Events that came too late.
    pub late: u64,
}

impl Order {
    /// Takes an event; returns the first one if too many wait.
    pub fn push(&mut self, event: Waiting) -> Option<Waiting> {
        self.waiting.push(Reverse(event));
        (self.waiting.len() > WAITING).then(|| self.pop())?
    }

    /// Returns the first event that waits.
    pub fn pop(&mut self) -> Option<Waiting> {
        let Reverse(first) = self.waiting.pop()?;
        if first.time_ns < self.last_ns {
            self.late = self.late.saturating_add(1);
        }
        self.last_ns = self.last_ns.max(first.time_ns);
        Some(first)
    }
}
