// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts of what a format cannot hold.

use super::requests::Request;
use mostrace_trace::attribute::Op;
use mostrace_trace::tally::Tally;

/// Counts of what a format cannot hold.
#[derive(Default)]
pub(super) struct LeftOut {
    flushes: u64,
    discards: u64,
    others: u64,
    pub fua: u64,
    pub late: u64,
}

impl LeftOut {
    /// Returns true if a request is a read or a write; counts it otherwise.
    pub fn moves(&mut self, request: &Request) -> bool {
        match request.op {
            Op::Read | Op::Write => return true,
            Op::Flush | Op::DeviceFlush => self.flushes.tally(1),
            Op::Discard | Op::WriteZeroes => self.discards.tally(1),
            _ => self.others.tally(1),
        }
        false
    }

    /// Returns a line for each count that is not 0.
    pub fn words(&self) -> Vec<String> {
        let of = [
            (self.flushes, "flushes have no place in this format"),
            (
                self.discards,
                "discards and write-zeroes have no place in this format",
            ),
            (
                self.others,
                "passthrough and zone requests have no place in this format",
            ),
            (self.fua, "writes with FUA are written as plain ones"),
            (
                self.late,
                "requests are out of order, because they took longer than a million others",
            ),
        ];
        counted(&of)
    }
}

/// Returns a line for each count that is not 0.
pub(super) fn counted(all: &[(u64, &str)]) -> Vec<String> {
    let some = all.iter().filter(|(count, _)| *count > 0);
    some.map(|(count, what)| format!("{count} {what}"))
        .collect()
}
