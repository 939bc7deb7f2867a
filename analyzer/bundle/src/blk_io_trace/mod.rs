// SPDX-License-Identifier: MIT OR Apache-2.0
//! The block event of the kernel's block tracer, as stored in `trace.blktrace.N`: v7 and v8, in either byte order; and the
//! [compact] form of many, as stored in `events.N`. [`Records`] reads files of both forms.
//!
//! ```text
//! v7, 48 bytes: magic sequence time... sector.. bytes action  pid    device  cpu error,pdu_len
//! v8, 64 bytes: magic sequence time... sector.. bytes pid     action.......  device cpu error,pdu_len pad[12]
//! then pdu_len bytes: a cgroup id if the action says so, and the payload
//! ```
//!
//! To read, [`decode`] returns the [`Event`] at the start of a byte slice; its payload borrows from the slice. To
//! write, [`encode`] appends an event as a record. [`Prefix`], [`BlkIoTrace`] and [`BlkIoTrace2`] are the raw fields,
//! to be read or changed in place with zerocopy's `ref_from_prefix` and `mut_from_prefix`.
//!
//! Source: `struct blk_io_trace` in `<linux/blktrace_api.h>`, and `struct blk_io_trace2` in kernels that have
//! `BLKTRACESETUP2`. The magic of each record says which of them it is.
#![deny(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing
)]

pub mod action;
pub mod compact;
mod decode;
mod encode;
mod event;
mod record;
mod records;
pub mod rwbs;

pub use decode::{Decoded, decode};
pub use encode::{EncodeError, encode};
pub use event::{Event, Remap};
pub use record::{BlkIoTrace, BlkIoTrace2, Layout, Prefix, Version};
pub use records::{Records, Then};

/// The magic number without its lowest byte, which is the version.
pub const BLK_IO_TRACE_MAGIC: u32 = 0x6561_7400;

/// Length of the longest possible record, bytes: a v8 head and the longest pdu.
pub const MAX_RECORD: usize = size_of::<BlkIoTrace2<zerocopy::LE>>() + 0xffff;
