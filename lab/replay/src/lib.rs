// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays an application's calls to a filesystem: the same calls in the same order, on another filesystem, with other contents.
//! The writes to the storage that result are those that the application would cause there.
//!
//! - [`Operation`] is one call. [`read_bundle`] reads those that `record --operations` put in a bundle, [`read_strace`]
//!   those in the output of strace, [`read_mobigen`] those in a MobiGen script.
//! - [`Start`] holds what must have existed before the first operation, as far as the operations show it.
//! - [`Replay`] makes the start in an empty folder (a `lost+found` may be there), and then the operations. It has a thread for
//!   each thread of the application. Each operation waits for those that it depended on.
//! - [`Outcome`] tells which calls returned the same result as in the recording, and how long they took.
//!
//! [`blocks`] replays the requests of a block trace on a device instead.
//!
//! A recording may come from anybody. A replay touches nothing outside the folder that it is given, and refuses calls that no
//! application needs.
#![deny(unsafe_code)]

mod beneath;
pub mod blocks;
mod bytes;
mod call;
mod deduce;
mod ended;
mod error;
mod flags;
mod make;
pub mod mobigen;
mod name;
mod operation;
mod order;
mod outcome;
mod player;
mod run;
mod size;
mod start;
mod strace;
mod sys;
mod table;
mod tree;
mod words;

pub use bytes::Contents;
pub use ended::Ended;
pub use error::{Error, Result};
pub use mobigen::read_mobigen;
pub use name::Name;
pub use operation::{Call, Change, FileCall, FileId, Opened, Operation, Range, Target, Unknown};
pub use outcome::{Difference, Latencies, Outcome, Quantiles, StartError, Tally};
pub use player::Timing;
pub use run::{Replay, Settings, refuse_unless_empty, replay};
pub use start::{Start, StartFile};
pub use strace::{StraceSettings, read_strace};
pub use table::{Recorded, read_bundle};
