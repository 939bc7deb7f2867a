// SPDX-License-Identifier: MIT OR Apache-2.0
//! The block event of the kernel's block tracer, as it stands in `trace.blktrace.N`: v7 and v8, in
//! either byte order.
//!
//! ```text
//! v7, 48 bytes: magic sequence time... sector.. bytes action  pid    device  cpu error,pdu_len
//! v8, 64 bytes: magic sequence time... sector.. bytes pid     action.......  device cpu error,pdu_len pad[12]
//! then pdu_len bytes: a cgroup id if the action says so, and the payload
//! ```
//!
//! To read: [`decode`] gives the [`Event`] at the start of some bytes, its payload a slice of them.
//! To write: [`encode`] appends an event as a record; [`Prefix`], [`BlkIoTrace`] and
//! [`BlkIoTrace2`] are the fields in place, to look at or to fill in, by zerocopy's
//! `ref_from_prefix` and `mut_from_prefix`.
//!
//! Source: `struct blk_io_trace` in `<linux/blktrace_api.h>`, `struct blk_io_trace2` in kernels
//! that have `BLKTRACESETUP2`. The magic of each record says which it is.
#![deny(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing
)]

pub mod action;
mod decode;
mod encode;
mod event;
mod record;

pub use decode::{Decoded, decode};
pub use encode::{EncodeError, encode};
pub use event::{Event, Remap};
pub use record::{BlkIoTrace, BlkIoTrace2, Layout, Prefix, Version};

/// The magic without its lowest byte, the version.
pub const BLK_IO_TRACE_MAGIC: u32 = 0x6561_7400;

/// The longest record there can be: v8 and the longest pdu.
pub const MAX_RECORD: usize = size_of::<BlkIoTrace2<zerocopy::LE>>() + 0xffff;
