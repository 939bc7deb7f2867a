// SPDX-License-Identifier: MIT OR Apache-2.0
//! An hour of a ledger, or a shorter time if `--every` says so.

use std::collections::BTreeMap;

use super::Latencies;
use crate::tally::{Tally, tallied_by_field};

/// What a row sums up. A field is None if it is unknown or does not apply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The user of the process that caused it.
    pub uid: Option<u32>,
    /// The Android app of that user.
    pub package: Option<String>,
    /// The process's name, escaped for a terminal; None if nobody is known to have caused it.
    pub command: Option<String>,
    /// What the process did; for rows of calls the kind of call.
    pub operation: Option<&'static str>,
    /// The class of the blocks; None for flushes, discards and calls.
    pub class: Option<&'static str>,
    /// The role of a regular file.
    pub role: Option<&'static str>,
    /// The layer's name.
    pub layer: Option<String>,
}

/// The figures of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Bytes that the device wrote.
    pub write_bytes: u64,
    /// Requests that wrote. A request counts for the cause with the largest share of its first sectors.
    pub writes: u64,
    /// Bytes that the device read.
    pub read_bytes: u64,
    /// Requests that read.
    pub reads: u64,
    /// Bytes that the device zeroed without being sent zeros; the kernel counts them as written.
    pub zeroed_bytes: u64,
    /// Bytes discarded.
    pub discard_bytes: u64,
    /// Flushes that were asked for.
    pub flushes: u64,
    /// Bytes that system calls wrote.
    pub asked_bytes: u64,
    /// How long the calls took that wait for the storage.
    pub durable: Latencies,
}

tallied_by_field! {
    Figures: write_bytes, writes, read_bytes, reads, zeroed_bytes, discard_bytes, flushes, asked_bytes, durable
}

/// What is known of an hour as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// For how long the device was watched, ns.
    pub ns: u64,
    /// Bytes that the kernel counted as written meanwhile, at least; 0 if its counters cannot be compared.
    pub kernel_write_bytes: u64,
    /// Bytes that the kernel counted as read, likewise.
    pub kernel_read_bytes: u64,
    /// Number of records that were lost.
    pub lost: u64,
}

/// The rows of an hour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hour {
    /// When it begins, seconds since 1970.
    pub begin: u64,
    /// `major:minor` of the disk.
    pub device: String,
    /// The hour as a whole.
    pub watched: Watched,
    /// The rows.
    pub rows: BTreeMap<Key, Figures>,
}

impl Hour {
    /// Adds figures to a row.
    pub fn add(&mut self, key: Key, figures: Figures) {
        self.rows.entry(key).or_default().tally(figures);
    }
}
