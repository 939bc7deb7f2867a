// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sums of a group of rows.

use crate::attribute::{Op, Request};
use crate::blktrace::action::{BLK_TC_FUA, BLK_TC_SYNC};
use crate::tally::{Tally, tallied_by_field};

/// The sums of a group of rows. A request counts once in each group that it has rows in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Completed requests (strictly: completions; one that was completed in two steps counts twice).
    pub requests: u64,
    /// Requests that wrote bytes.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// The part of `writes` that is marked synchronous.
    pub sync_writes: u64,
    /// The part of `writes` with forced unit access (FUA).
    pub fua_writes: u64,
    /// Requests that read bytes.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Ends of flush sequences: requests that asked for a cache flush.
    pub flushes: u64,
    /// Cache flushes that the device executed.
    pub device_flushes: u64,
    /// Discards.
    pub discards: u64,
    /// Bytes discarded.
    pub discard_bytes: u64,
    /// Write-zeroes requests.
    pub write_zeroes: u64,
    /// Bytes zeroed by them.
    pub write_zeroes_bytes: u64,
    /// Passthrough and zone requests.
    pub others: u64,
    /// The bytes that they carried: data of a passthrough command, or the length of the zones.
    pub other_bytes: u64,
    /// The part of `requests` that ended with an error; their bytes are counted like the others.
    pub failed: u64,
}

/// The properties that decide where a request is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sort {
    /// The operation.
    pub op: Op,
    /// True if it is marked synchronous.
    pub sync: bool,
    /// True if it has forced unit access (FUA).
    pub fua: bool,
    /// True if it ended with an error.
    pub failed: bool,
}

impl Sort {
    /// Returns a sort with no other property than its operation.
    pub fn only(op: Op) -> Sort {
        Sort {
            op,
            sync: false,
            fua: false,
            failed: false,
        }
    }

    /// Determines the sort of a request.
    pub fn of(request: &Request) -> Sort {
        Sort {
            op: request.op,
            sync: request.action & BLK_TC_SYNC != 0,
            fua: request.action & BLK_TC_FUA != 0,
            failed: request.error != 0,
        }
    }
}

impl Totals {
    /// Returns the bytes written and read.
    pub fn bytes(&self) -> u64 {
        self.write_bytes.saturating_add(self.read_bytes)
    }

    /// Returns the sums of bytes alone.
    #[must_use]
    pub fn only_bytes(&self) -> Totals {
        Totals {
            write_bytes: self.write_bytes,
            read_bytes: self.read_bytes,
            discard_bytes: self.discard_bytes,
            write_zeroes_bytes: self.write_zeroes_bytes,
            other_bytes: self.other_bytes,
            ..Totals::default()
        }
    }

    /// Returns every sum with its name, in the order in which they are printed.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> {
        FIELDS.iter().map(|(name, field)| (*name, field(self)))
    }

    /// Adds `requests` requests of one sort, and the bytes that their rows have in this group.
    pub fn count(&mut self, sort: Sort, requests: u64, bytes: u64) {
        self.requests.tally(requests);
        if sort.failed {
            self.failed.tally(requests);
        }
        match sort.op {
            Op::Write => {
                self.writes.tally(requests);
                self.write_bytes.tally(bytes);
                if sort.sync {
                    self.sync_writes.tally(requests);
                }
                if sort.fua {
                    self.fua_writes.tally(requests);
                }
            }
            Op::Read => {
                self.reads.tally(requests);
                self.read_bytes.tally(bytes);
            }
            Op::Flush => self.flushes.tally(requests),
            Op::DeviceFlush => self.device_flushes.tally(requests),
            Op::Discard => {
                self.discards.tally(requests);
                self.discard_bytes.tally(bytes);
            }
            Op::WriteZeroes => {
                self.write_zeroes.tally(requests);
                self.write_zeroes_bytes.tally(bytes);
            }
            // Requests that manage zones have no bytes.
            _ => {
                self.others.tally(requests);
                self.other_bytes.tally(bytes);
            }
        }
    }
}

tallied_by_field! {
    Totals: requests, writes, write_bytes, sync_writes, fua_writes, reads, read_bytes, flushes,
    device_flushes, discards, discard_bytes, write_zeroes, write_zeroes_bytes, others,
    other_bytes, failed
}

/// A column's name and how to get it from totals.
type Field = (&'static str, fn(&Totals) -> u64);

/// The columns in the order in which they are printed.
pub const FIELDS: &[Field] = &[
    ("requests", |t| t.requests),
    ("bytes", |t| t.bytes()),
    ("writes", |t| t.writes),
    ("write_bytes", |t| t.write_bytes),
    ("reads", |t| t.reads),
    ("read_bytes", |t| t.read_bytes),
    ("flushes", |t| t.flushes),
    ("discards", |t| t.discards),
    ("discard_bytes", |t| t.discard_bytes),
    ("device_flushes", |t| t.device_flushes),
    ("sync_writes", |t| t.sync_writes),
    ("fua_writes", |t| t.fua_writes),
    ("write_zeroes", |t| t.write_zeroes),
    ("write_zeroes_bytes", |t| t.write_zeroes_bytes),
    ("others", |t| t.others),
    ("other_bytes", |t| t.other_bytes),
    ("failed", |t| t.failed),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of every operation are in one column: a table's sums are those of the rows.
    #[test]
    fn no_bytes_are_dropped() {
        for op in Op::ALL.iter().copied() {
            let sort = Sort::only(op);
            let mut totals = Totals::default();
            totals.count(sort, 1, 4096);
            let sums = totals.fields().filter(|(name, _)| name.ends_with("bytes"));
            let sums: Vec<_> = sums.filter(|(_, bytes)| *bytes > 0).collect();
            let expected = match op {
                Op::Write => vec![("bytes", 4096), ("write_bytes", 4096)],
                Op::Read => vec![("bytes", 4096), ("read_bytes", 4096)],
                // Their completions carry none (`Op::of`).
                Op::Flush | Op::DeviceFlush => vec![],
                Op::Discard => vec![("discard_bytes", 4096)],
                Op::WriteZeroes => vec![("write_zeroes_bytes", 4096)],
                // Requests for zones carry none either.
                _ => vec![("other_bytes", 4096)],
            };
            assert_eq!(sums, expected, "{op:?}");
        }
    }
}
