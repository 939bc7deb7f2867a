// SPDX-License-Identifier: MIT OR Apache-2.0
//! Capture for mostrace: block events from one of three sources, entries from one of two, and a
//! snapshot of the filesystem's metadata, into one bundle.

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

pub use choice::{Causes, Choice, Entries, Events};
pub use error::{Error, Refused};
pub use machine::device::Device;
pub use machine::user::User;
pub use record::{Options, Outcome, Progress, Segments, Size, check_output, record, segment};
pub use source::bpf::RingSize;
pub use source::recorder::KernelPaths;
pub use workplace::{FreshKind, FreshOptions, Site, Workplace, aside, prepare};
