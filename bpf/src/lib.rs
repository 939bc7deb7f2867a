// SPDX-License-Identifier: MIT OR Apache-2.0
//! Capture for mostrace: block events from one of three sources, entries from one of two, and a
//! snapshot of the filesystem's metadata, into one bundle.

mod aside;
mod causes;
mod choice;
mod clock;
mod command;
mod cut;
mod descendants;
mod device;
pub mod doctor;
mod entries;
mod error;
mod events;
mod filesystem;
mod first_page;
mod guard;
mod kernel;
mod leftovers;
mod lock;
mod loops;
mod mapper;
mod medium;
mod memory;
mod mountinfo;
mod mounts;
mod names;
mod openers;
mod packages;
mod payload;
mod prepare;
mod probes;
mod progress;
mod record;
mod ring_page;
mod ring_size;
mod session;
mod site;
mod snapshot;
mod tool;
mod tracefs;
mod trees;
mod user;
mod wait;
mod workplace;

/// How often a source is polled that cannot say when there is something to poll for.
pub(crate) const TICK: std::time::Duration = std::time::Duration::from_millis(5);

pub use aside::aside;
pub use causes::Causes;
pub use choice::{Choice, Events};
pub use device::Device;
pub use entries::Entries;
pub use entries::kernel::KernelPaths;
pub use error::{Error, Refused};
pub use prepare::prepare;
pub use progress::Progress;
pub use record::{Options, Outcome, Segments, Size, check_output, record, segment};
pub use ring_size::RingSize;
pub use site::{FreshKind, FreshOptions, Site};
pub use user::User;
pub use workplace::Workplace;
