// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes and flushes over time.

use serde::Serialize;

use super::colour::Colour;
use super::scan::Seen;
use crate::attribute::Op;
use crate::tally::Tally;

/// Number of bins into which a trace's time is divided.
const BINS: usize = 300;

/// The time of a trace in bins of equal length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    start_ns: u64,
    bin_ns: u64,
}

impl Clock {
    /// Divides the time from the first completion to the last into at most `bins` bins.
    pub fn new((first, last): (u64, u64), bins: usize) -> Clock {
        let span = last.saturating_sub(first);
        let whole = span.checked_div(bins as u64).unwrap_or(span);
        Clock {
            start_ns: first,
            bin_ns: whole.saturating_add(1),
        }
    }

    /// Returns the bin of a moment in the trace.
    pub fn bin(&self, time_ns: u64) -> usize {
        let since = time_ns.saturating_sub(self.start_ns);
        let bin = since.checked_div(self.bin_ns).unwrap_or(0);
        usize::try_from(bin).unwrap_or(0)
    }

    /// Returns the length of a bin, ns.
    pub fn bin_ns(&self) -> u64 {
        self.bin_ns
    }
}

/// The bytes and flushes that reached the device in each bin.
#[derive(Debug, Serialize)]
pub(super) struct Timeline {
    bin_ns: u64,
    #[serde(skip)]
    clock: Clock,
    /// Bytes written, by colour and bin.
    written: Vec<Vec<u64>>,
    read: Vec<u64>,
    /// Number of cache flushes that the device executed, by bin.
    flushes: Vec<u64>,
}

impl Timeline {
    pub fn new(span: (u64, u64)) -> Timeline {
        let clock = Clock::new(span, BINS);
        Timeline {
            bin_ns: clock.bin_ns(),
            clock,
            written: vec![vec![0; BINS]; Colour::WITH_BYTES],
            read: vec![0; BINS],
            flushes: vec![0; BINS],
        }
    }

    pub fn see(&mut self, row: &Seen) {
        let bin = self.clock.bin(row.time_ns);
        match row.op {
            Op::Write => self.written[row.colour as usize][bin].tally(row.bytes),
            Op::Read => self.read[bin].tally(row.bytes),
            Op::DeviceFlush => self.flushes[bin].tally(1),
            _ => {}
        }
    }
}
