// SPDX-License-Identifier: MIT OR Apache-2.0
//! The requests of FUSE that daemons served.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, LE, U32, U64};

use super::RawHead;

/// `MOSTRACE_SERVED`.
pub const TYPE_SERVED: u16 = 17;

/// `struct mostrace_served`: a FUSE request that a thread of its daemon served, and who made it. The thread answered it at
/// `head.time_ns`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawServed {
    /// Common head.
    pub head: RawHead,
    /// CLOCK_MONOTONIC when the thread began to wait for the request, ns.
    pub start_ns: U64<LE>,
    /// The request's number.
    pub unique: U64<LE>,
    /// Thread of the daemon.
    pub pid: U32<LE>,
    /// The daemon.
    pub tgid: U32<LE>,
    /// The thread that made the request.
    pub for_pid: U32<LE>,
    /// Its process, or [`UNKNOWN_ID`](super::UNKNOWN_ID).
    pub for_tgid: U32<LE>,
    /// Its user.
    pub for_uid: U32<LE>,
    /// `enum fuse_opcode`: what was requested.
    pub opcode: U32<LE>,
    /// Its `task->comm`, NUL-padded; empty if its process is unknown.
    pub for_comm: [u8; 16],
}

const _: () = assert!(size_of::<RawServed>() == 88);
