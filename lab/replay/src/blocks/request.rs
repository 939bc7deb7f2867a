// SPDX-License-Identifier: MIT OR Apache-2.0
//! A request of a block trace.

use serde::Serialize;
use strum::{IntoStaticStr, VariantArray};

/// The kinds of requests (`enum req_op` of the kernel).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray, Serialize,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Op {
    /// Read sectors.
    Read,
    /// Write sectors.
    Write,
    /// Write what the device's cache holds to its medium.
    Flush,
    /// Forget what sectors hold.
    Discard,
    /// Write zeros without carrying them.
    WriteZeroes,
}

/// A request that was completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The kind of the request.
    pub op: Op,
    /// The first sector of 512 bytes, on the whole disk.
    pub sector: u64,
    /// The length in bytes; 0 for a flush.
    pub bytes: u32,
    /// True for a write that is complete only once it is on the medium (`REQ_FUA`).
    pub fua: bool,
    /// True for a write before which the device's cache is flushed (`REQ_PREFLUSH`).
    pub preflush: bool,
    /// The thread that queued it; None if it is not known.
    pub thread: Option<u32>,
    /// The time when it was queued, ns; if bios were merged, the time of the last one.
    pub queued_ns: u64,
    /// The time when it was completed, ns.
    pub completed_ns: u64,
}

impl Request {
    /// Returns the range in bytes (its start, and the byte behind it); None for a flush.
    pub(crate) fn range(&self) -> Option<(u64, u64)> {
        let begin = self.sector.saturating_mul(512);
        let end = begin.saturating_add(self.bytes.into());
        (begin < end).then_some((begin, end))
    }

    /// Returns true if the request separates what comes before it from what comes after it: a flush, or a write with a flush or
    /// FUA, such as the commit block of a journal.
    pub(crate) fn is_barrier(&self) -> bool {
        self.op == Op::Flush || self.fua || self.preflush
    }
}
