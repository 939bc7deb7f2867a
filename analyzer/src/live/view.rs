// SPDX-License-Identifier: MIT OR Apache-2.0
//! What there is to be shown after a segment.

use std::time::Duration;

use mostrace_map::class::Class;

use crate::attribute::{Op, Request};
use crate::tally::{Tally, sum};

/// What a segment told, and all of them until then.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// How long the segment lasted.
    pub lasted: Duration,
    /// How long all of them did.
    pub since: Duration,
    /// What the device completed in the segment.
    pub now: Device,
    /// The same of all.
    pub device: Device,
    /// Bytes written in the segment and in all, by class, as in [`Class::ALL`].
    pub classes: [(u64, u64); Class::ALL.len()],
    /// Bytes that system calls wrote in the segment and in all; None where no calls are recorded.
    pub asked: Option<(u64, u64)>,
    /// How long the writes of the segment took.
    pub write_latency: Latency,
    /// How long its reads did.
    pub read_latency: Latency,
    /// By process that caused it: those of one command as one, as `sh ×3`; what nobody is known to have caused, by who submitted
    /// it, marked.
    pub processes: Vec<Line>,
    /// By file for which it was caused.
    pub files: Vec<Line>,
    /// Records lost so far.
    pub lost: u64,
    /// What others did to the trace in this segment.
    pub interference: Vec<String>,
}

/// What the device completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// Requests that wrote.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Requests that read.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Requests that asked for a cache flush.
    pub flushes: u64,
}

/// How long requests took, from their issue to their completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Those of which it is known.
    pub requests: u32,
    /// Of all of them together.
    pub sum: Duration,
    /// Of the slowest.
    pub most: Duration,
}

/// What one process or file caused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Who or which, as text that harms no terminal.
    pub name: String,
    /// In the last segment.
    pub now: Amount,
    /// In all.
    pub all: Amount,
}

/// What was caused, and what was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Bytes written, by class, as in [`Class::ALL`].
    pub classes: [u64; Class::ALL.len()],
    /// Bytes read.
    pub read: u64,
    /// Flushes that were forced.
    pub flushes: u64,
    /// Of a process: bytes that its system calls wrote.
    pub asked: u64,
}

impl Device {
    /// Takes in a request.
    pub(super) fn count(&mut self, request: &Request) {
        let bytes = u64::from(request.bytes);
        match request.op {
            Op::Write => {
                self.writes.tally(1);
                self.write_bytes.tally(bytes);
            }
            Op::Read => {
                self.reads.tally(1);
                self.read_bytes.tally(bytes);
            }
            Op::Flush => self.flushes.tally(1),
            _ => {}
        }
    }
}

impl Latency {
    /// Takes in a request.
    pub(super) fn count(&mut self, request: &Request) {
        let Some(issued) = request.d_ns else { return };
        let took = Duration::from_nanos(request.time_ns.saturating_sub(issued));
        self.requests.tally(1);
        self.sum = self.sum.saturating_add(took);
        self.most = self.most.max(took);
    }

    /// None of no request.
    pub fn mean(&self) -> Option<Duration> {
        self.sum.checked_div(self.requests)
    }
}

impl Tally for Device {
    fn tally(&mut self, more: Device) {
        self.writes.tally(more.writes);
        self.write_bytes.tally(more.write_bytes);
        self.reads.tally(more.reads);
        self.read_bytes.tally(more.read_bytes);
        self.flushes.tally(more.flushes);
    }
}

impl Amount {
    /// Bytes written, of all classes.
    pub fn bytes(&self) -> u64 {
        sum(self.classes)
    }

    /// Bytes that reached the device for each that was asked for; None where too few were.
    pub fn amplification(&self) -> Option<f64> {
        ratio(self.bytes(), self.asked)
    }
}

impl Tally for Amount {
    fn tally(&mut self, more: Amount) {
        self.classes.tally(more.classes);
        self.read.tally(more.read);
        self.flushes.tally(more.flushes);
        // A call is told of with any length.
        self.asked.tally(more.asked);
    }
}

impl View {
    /// Bytes that the device wrote for each that a system call wrote, of all segments.
    pub fn amplification(&self) -> Option<f64> {
        let (_, asked) = self.asked?;
        ratio(self.device.write_bytes, asked)
    }
}

/// Of less, a ratio says more of what else happened to be written.
const ENOUGH: u64 = 1 << 20;

fn ratio(bytes: u64, of: u64) -> Option<f64> {
    // What is shown has three digits.
    (of >= ENOUGH).then(|| bytes as f64 / of as f64)
}
