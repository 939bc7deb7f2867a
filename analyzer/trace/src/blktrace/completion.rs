// SPDX-License-Identifier: MIT OR Apache-2.0
//! A completion: what one C event finished, and the events of the request that led to it.
//!
//! A discard is a completion with bytes and without data whose action has
//! [`BLK_TC_DISCARD`](mostrace_bundle::blk_io_trace::action::BLK_TC_DISCARD). Write zeroes are writes (v8 has a category bit for
//! them, v7 has not). A flush is a completion of 0 bytes. It ends a flush bio, a write's flush sequence (after the completion of
//! its bytes), or the flush machinery's own request, which is neither read nor write and has no bio.

/// One bio, or the part of one that this completion covers, as its Q event described it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// First sector of the part on the whole disk.
    pub sector: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// Time of Q, ns; None if Q was not seen or if one of several Qs cannot be chosen.
    pub q_ns: Option<u64>,
    /// The CPU of that Q.
    pub q_cpu: Option<u32>,
    /// The thread that queued it (Q runs in the submitter); None if Q was not seen, or if bios of several threads for the
    /// same sectors were in flight.
    pub pid: Option<u32>,
}

/// One C event of a filesystem (FS) or passthrough (PC) request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion<'a> {
    /// Time of C, in ns of the trace's clock.
    pub time_ns: u64,
    /// The trace's device number, major << 20 | minor.
    pub device: u32,
    /// Category and action bits as blktrace wrote them (v7's 32-bit `action`, widened).
    pub action: u64,
    /// First sector on the whole disk.
    pub sector: u64,
    /// The sectors from the one for which it was queued to `sector`: the disk itself decides where in its zone an append goes
    /// ([`Zones`](mostrace_bundle::Zones)). 0 for any other request, and for an append to the beginning of a zone.
    pub moved: u64,
    /// True if it was queued for the first sector of a zone, as all appends to the zone are.
    pub begins_zone: bool,
    /// Bytes completed; 0 for flushes and the end of a flush sequence.
    pub bytes: u32,
    /// An errno, 0 for success; the record's `error` without its sign.
    pub error: u16,
    /// The CPU of C.
    pub cpu: u32,
    /// The device flush that this flush, or write with a preflush, waited for, as the index of its completion (from 0). None
    /// if there was none, or if several are possible.
    pub device_flush: Option<u32>,
    /// Time of the last D before C, ns; at the end of a flush sequence, that of its data.
    pub d_ns: Option<u64>,
    /// The CPU of that D.
    pub d_cpu: Option<u32>,
    /// Time of I, ns, if the request was inserted.
    pub i_ns: Option<u64>,
    /// The CPU of that I.
    pub i_cpu: Option<u32>,
    /// Time of the request's G, ns.
    pub g_ns: Option<u64>,
    /// True if another request for the same sectors was in flight: it is unknown which of the two was completed, and fields
    /// in which they differ are None.
    pub twin: bool,
    /// True if it began where the request of the same direction issued before it on the device ended; the rest of a request
    /// that is completed in parts is sequential too. Only reads and writes are compared, without discards. Where no D was
    /// seen, the order of C events decides.
    pub sequential: bool,
    /// The bios in sector order; they are disjoint and cover `bytes` bytes from `sector` on exactly. Sectors without a Q are
    /// a part with `q_ns: None`. Never empty: a completion of 0 bytes has one part of 0 bytes, with the Q of the flush (or
    /// of the flushed write) that it ends, if that was seen.
    pub parts: &'a [Part],
}
