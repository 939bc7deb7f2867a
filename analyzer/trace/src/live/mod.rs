// SPDX-License-Identifier: MIT OR Apache-2.0
//! A live view of a running recording, whose segments are read as they end.
//!
//! ```text
//! segments (bundles) ─ follow ─ events and tables, each record once ─ Attributor, Causer ─ Fold, for example Views
//! ```
//!
//! One attributor and one causer read all segments, so that a request, transaction or system call that spans two segments is
//! handled as in a recording of one piece. A segment is read when the next one has ended, because a call is recorded when it
//! returns, which may be after what was written for it.
// A recording may come from anybody: no number in it may make this panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod chain;
mod follow;
mod paths;
mod sums;
mod view;
mod views;

pub use follow::follow;
pub use paths::Paths;
pub use view::{Amount, Latency, Line, View};
pub use views::Views;
