// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading blktrace's per-CPU files: records → events in time order → completions.
//!
//! ```text
//! x.blktrace.0 ─ CpuFile ┐
//! x.blktrace.1 ─ CpuFile ┼─ Trace (events) ─ LifeCycles ─ Completion { parts }
//! x.blktrace.2 ─ CpuFile ┘         └─ ThreadNames, Counts, WallClock
//! ```
//!
//! [`find::find`] returns the files of a basename, [`Trace::open`] merges them, and [`Completions`] does all steps, [`Ahead`] in a thread of
//! its own. Memory is bounded by the number of files and of requests in flight, never by the length of the trace.
#![deny(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing
)]

mod ahead;
pub mod completion;
pub mod completions;
mod cpu_file;
mod disks;
pub mod error;
pub mod find;
mod flushes;
pub mod lane;
mod lifecycle;
pub mod names;
mod order;
mod relative;
mod request;
pub mod rwbs;
mod spans;
mod streams;
pub mod trace;

pub use ahead::Ahead;
pub use completion::{Completion, Part};
pub use completions::Completions;
pub use error::Error;
pub use find::{find, stem};
pub use lifecycle::LifeCycles;
pub use mostrace_bundle::blk_io_trace::{Event, action};
pub use names::{ThreadNames, WallClock};
pub use rwbs::rwbs;
pub use trace::{Notice, Partial, Trace};
