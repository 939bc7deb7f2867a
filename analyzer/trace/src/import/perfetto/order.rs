// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts the events of several CPUs, whose buffers are read one after the other, in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The most events that wait; a CPU's buffer has fewer.
const WAITING: usize = 1 << 17;
/// The most bytes that they have. An event of ftrace has at most a page, and few have 200 bytes.
const BYTES: usize = 32 << 20;

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
pub(super) struct Sorter {
    waiting: BinaryHeap<Reverse<Waiting>>,
    bytes: usize,
    last_ns: u64,
    /// Events that came too late.
    pub late: u64,
}

impl Sorter {
    /// Takes an event.
    pub fn push(&mut self, event: Waiting) {
        self.bytes = self.bytes.saturating_add(event.message.len());
        self.waiting.push(Reverse(event));
    }

    /// Returns the first event if too many wait.
    pub fn pop_surplus(&mut self) -> Option<Waiting> {
        let is_too_much = self.waiting.len() > WAITING || self.bytes > BYTES;
        is_too_much.then(|| self.pop())?
    }

    /// Returns the first event that waits.
    pub fn pop(&mut self) -> Option<Waiting> {
        let Reverse(first) = self.waiting.pop()?;
        self.bytes = self.bytes.saturating_sub(first.message.len());
        if first.time_ns < self.last_ns {
            self.late = self.late.saturating_add(1);
        }
        self.last_ns = self.last_ns.max(first.time_ns);
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compressed packets may have a thousand times the bytes of the file.
    #[test]
    fn what_waits_has_few_bytes() {
        let mut order = Sorter::default();
        for time_ns in 0..100 {
            order.push(Waiting {
                time_ns,
                place: 0,
                cpu: 0,
                thread: 0,
                number: 0,
                message: vec![0; 8 << 20].into(),
            });
            while order.pop_surplus().is_some() {}
        }
        assert_eq!(order.waiting.len(), 4);
    }
}
