// SPDX-License-Identifier: MIT OR Apache-2.0
//! Capture for mostrace: block events from one of three sources, entries from one of two, and a
//! snapshot of the filesystem's metadata, into one bundle.

mod causes;
mod choice;
mod cut;
pub mod doctor;
mod entries;
mod error;
mod events;
mod machine;
mod names;
mod probes;
mod record;
mod ring_size;
mod snapshot;
mod tracefs;
mod trees;
mod workplace;

/// How often a source is polled that cannot say when there is something to poll for.
pub(crate) const TICK: std::time::Duration = std::time::Duration::from_millis(5);

pub use causes::Causes;
pub use choice::{Choice, Events};
pub use entries::Entries;
pub use entries::kernel::KernelPaths;
pub use error::{Error, Refused};
pub use machine::device::Device;
pub use machine::user::User;
pub use record::{Options, Outcome, Progress, Segments, Size, check_output, record, segment};
pub use ring_size::RingSize;
pub use workplace::{FreshKind, FreshOptions, Site, Workplace, aside, prepare};
