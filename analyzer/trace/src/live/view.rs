// SPDX-License-Identifier: MIT OR Apache-2.0
//! The view after a segment.

use std::time::Duration;

use mostrace_map::class::Class;

use crate::attribute::Request;
use crate::sums::Totals;
use crate::tally::{Tally, sum, tallied_by_field};

/// The figures of a segment and of all segments so far.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Duration of the segment.
    pub lasted: Duration,
    /// Duration of all segments.
    pub since: Duration,
    /// The device's completions in the segment.
    pub now: Totals,
    /// The device's completions in all segments.
    pub device: Totals,
    /// Bytes written in the segment and in total, by class in the order of [`Class::ALL`].
    pub classes: [(u64, u64); Class::ALL.len()],
    /// Bytes that system calls wrote in the segment and in total; None if calls are not recorded.
    pub asked: Option<(u64, u64)>,
    /// Latency of the segment's writes.
    pub write_latency: Latency,
    /// Latency of the segment's reads.
    pub read_latency: Latency,
    /// Lines by the process that caused it: processes of one command are merged, as `sh ×3`; if the cause is unknown, the
    /// line is the submitter's, marked as such.
    pub processes: Vec<Line>,
    /// Lines by the file for which it was caused.
    pub files: Vec<Line>,
    /// Lines by the cgroup (v2) of the process that caused it, or submitted it if the cause is unknown; the names are paths.
    pub cgroups: Vec<Line>,
    /// Number of records lost so far.
    pub lost: u64,
    /// Interference of others with the tracing in this segment.
    pub interference: Vec<String>,
}

/// The time of requests from issue to completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Number of requests with a known time.
    pub requests: u32,
    /// The sum of their times.
    pub sum: Duration,
    /// The time of the slowest one.
    pub most: Duration,
}

/// The bytes and flushes that one process or file caused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Name of the process or file, escaped for a terminal.
    pub name: String,
    /// The amount in the last segment.
    pub now: Amount,
    /// The amount in total.
    pub all: Amount,
}

/// Bytes and flushes that were caused, and bytes that were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Bytes written, by class in the order of [`Class::ALL`].
    pub classes: [u64; Class::ALL.len()],
    /// Bytes read.
    pub read: u64,
    /// Number of flushes that it forced.
    pub flushes: u64,
    /// Bytes that a process's system calls wrote.
    pub asked: u64,
}

impl Latency {
    /// Adds a request.
    pub(super) fn count(&mut self, request: &Request) {
        let Some(issued) = request.d_ns else { return };
        let took = Duration::from_nanos(request.time_ns.saturating_sub(issued));
        self.requests.tally(1);
        self.sum = self.sum.saturating_add(took);
        self.most = self.most.max(took);
    }

    /// Returns the mean time; None without requests.
    pub fn mean(&self) -> Option<Duration> {
        self.sum.checked_div(self.requests)
    }
}

impl Amount {
    /// Returns the bytes written in all classes.
    pub fn bytes(&self) -> u64 {
        sum(self.classes)
    }

    /// Returns the bytes that reached the device for each byte that was asked for; None if too few were.
    pub fn amplification(&self) -> Option<f64> {
        ratio(self.bytes(), self.asked)
    }
}

// A trace may claim any length for a call.
tallied_by_field! {
    Amount: classes, read, flushes, asked
}

impl Line {
    /// Adds the amounts of another line.
    pub fn add(&mut self, other: &Line) {
        self.now.tally(other.now);
        self.all.tally(other.all);
    }
}

impl View {
    /// Returns the bytes that the device wrote for each byte that a system call wrote, over all segments.
    pub fn amplification(&self) -> Option<f64> {
        let (_, asked) = self.asked?;
        ratio(self.device.write_bytes, asked)
    }
}

/// With fewer bytes asked for than this, a ratio is dominated by what else was written.
const ENOUGH: u64 = 1 << 20;

fn ratio(bytes: u64, of: u64) -> Option<f64> {
    // The view shows three digits.
    (of >= ENOUGH).then(|| bytes as f64 / of as f64)
}
