// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays what an application did to a filesystem: the same calls in the same order, on another filesystem, with other
//! contents. What that writes to the storage is what the application would write there.
//!
//! - [`Operation`] is one call. [`read_bundle`] reads those that `record --operations` put in a bundle,
//!   [`read_strace`] those in the output of strace, [`read_mobigen`] those in a MobiGen
//!   script.
//!
//! A recording may come from anybody. A replay touches nothing outside the folder that it is given, and refuses what no
//! application needs.
#![forbid(unsafe_code)]

mod error;
mod flags;
pub mod mobigen;
mod name;
mod operation;
mod strace;
mod table;

pub use error::{Error, Result};
pub use mobigen::read_mobigen;
pub use name::Name;
pub use operation::{Call, FileId, Opened, Operation, Range, Target};
pub use strace::{StraceSettings, read_strace};
pub use table::{Recorded, read_bundle};
