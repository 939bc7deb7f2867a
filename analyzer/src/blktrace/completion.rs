// SPDX-License-Identifier: MIT OR Apache-2.0
//! A completion: what one C event finished, and the life that led there.
//!
//! Discards are completions with bytes, [`BLK_TC_DISCARD`](mostrace_bundle::blk_io_trace::action::BLK_TC_DISCARD) in their
//! action, and no data; write zeroes are writes (v8 has a category bit for them, v7 has not). A
//! flush is a completion of 0 bytes: of the flush bio itself, of a write's flush sequence (after
//! the completion of its bytes), or, neither read nor write, of the flush machinery's own request,
//! which has no bio.

/// One bio (or the part of one that this completion covers), as its Q event told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// First sector of the part, whole disk.
    pub sector: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// Time of Q; None if Q was not seen, or if it cannot be told which of several Qs it was.
    pub q_ns: Option<u64>,
    /// The CPU of that Q.
    pub q_cpu: Option<u32>,
    /// The thread that queued it (Q runs in the submitter); None if Q was not seen, or if bios of
    /// several threads were under way to the same sectors.
    pub pid: Option<u32>,
}

/// One C event of a filesystem (FS) or passthrough (PC) request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion<'a> {
    /// Time of C, in the trace's clock.
    pub time_ns: u64,
    /// The trace's device number, major << 20 | minor.
    pub device: u32,
    /// Category and action bits as blktrace wrote them (v7's 32-bit `action`, widened).
    pub action: u64,
    /// First sector, whole disk.
    pub sector: u64,
    /// Bytes completed; 0 for flushes and the end of a flush sequence.
    pub bytes: u32,
    /// An errno, 0 for success; the record's `error` without its sign.
    pub error: u16,
    /// The CPU of C.
    pub cpu: u32,
    /// The device flush that this flush, or write with a flush ahead of it, waited for: its number among the
    /// completions, from 0. None where there was none, or where several may have been it.
    pub device_flush: Option<u32>,
    /// Time of the last D before C; at the end of a flush sequence that of its data.
    pub d_ns: Option<u64>,
    /// The CPU of that D.
    pub d_cpu: Option<u32>,
    /// Time of I, where the request was inserted.
    pub i_ns: Option<u64>,
    /// The CPU of that I.
    pub i_cpu: Option<u32>,
    /// Time of G of the request.
    pub g_ns: Option<u64>,
    /// Whether another request of the same sectors was under way: which of the two was completed is not
    /// known, and what they do not have in common is None.
    pub twin: bool,
    /// Whether it began where the request of the same direction that was issued before it on the
    /// device ended; so does the rest of a request that is completed in parts. Only reads and
    /// writes, without discards, are held against each other. What no D was seen of is so by its C.
    pub sequential: bool,
    /// The bios, in sector order, disjoint, covering `sector..` for `bytes` exactly; what no Q
    /// explains is a part with `q_ns: None`. Never empty: a completion of 0 bytes has one
    /// part of 0 bytes, with the Q of the flush (or of the flushed write) it ends, if seen.
    pub parts: &'a [Part],
}
