// SPDX-License-Identifier: MIT OR Apache-2.0
//! Capture for mostrace: records the block IO of a device into a bundle, which other crates read.
//!
//! A recording has three parts. *Block events* are what blktrace records: a bio is queued, a request is issued and completes.
//! *Entries* tell who queued a bio, and to which file it belongs. *Causes* are the handles of a filesystem's journal, the blocks
//! that each dirtied, and the system calls behind them. At the end, a *snapshot* of the filesystem's metadata is added, which maps
//! sectors to files.
//!
//! These are the main types, in the order in which one meets them:
//!
//! - [`Options`] describe what to record: the device, the command to run meanwhile, the bundle to write. By default, the first
//!   source that works is chosen for each part; [`Choice`], [`Entries`] and [`Causes`] name one.
//! - [`record()`] records until the command ends, the time is up, or a signal comes. It needs root.
//! - [`Outcome`] is the result: the command's exit status, and the manifest with the counts and losses.
//! - [`Error`] says in one line what went wrong, and what the user can do about it, if anything.
//! - [`Segments`] split a long recording into consecutive bundles; [`segment`] returns the name of each.
//! - [`Site`] is a fresh filesystem on a loop device, and [`Workplace`] is a copy of the caller's folder on it. A command can be
//!   measured there without anybody else writing.
//! - [`doctor::examine`] checks what can be recorded on this machine.
//!
//! # Example
//!
//! ```no_run
//! use mostrace_capture::{Options, record};
//!
//! let outcome = record(&Options {
//!     device: "/dev/sda2".into(),
//!     output: "run.most".into(),
//!     argv: vec!["sync".into()],
//!     ..Options::default()
//! })?;
//! println!("{} events", outcome.manifest.counts["events"]);
//! # Ok::<(), mostrace_capture::Error>(())
//! ```
//!
//! docs/ARCHITECTURE.md shows which module uses which.

mod choice;
pub mod doctor;
mod error;
mod machine;
mod record;
mod sink;
mod snapshot;
mod source;
mod trees;
mod workplace;

pub use choice::{Causes, Choice, Entries, Events, Operations};
pub use error::{Error, Refused};
pub use machine::device::Device;
pub use machine::health::Drive;
pub use machine::lock::lock_holder;
pub use machine::memory::{give_back, share_heap};
pub use machine::user::User;
pub use record::{
    Keep, Options, Outcome, Progress, Segments, Size, check, check_output, record, segment,
};
pub use sink::NameFilter;
pub use source::bpf::RingSize;
pub use source::recorder::KernelPaths;
pub use workplace::{FreshKind, FreshOptions, Site, Workplace, aside, prepare, settle};
