// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording that goes on, read segment by segment as they end: what a live view shows.
//!
//! ```text
//! segments (bundles) ─ follow ─ events and tables, each record once ─ Attributor, Causer ─ Sums ─ View, one for each segment
//! ```
//!
//! One attributor and one causer go through all of them, so that what a cut divides (a request, a transaction, a system
//! call) is known as in a recording of one piece. A segment is read when the next one has ended: a call is told of when it
//! returns, which may be after what was written for it.
// A recording may come from anybody: no number in it may make this panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod chain;
mod follow;
mod sums;
mod view;

pub use follow::follow;
pub use view::{Amount, Device, Latency, Line, View};
