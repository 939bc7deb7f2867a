// SPDX-License-Identifier: MIT OR Apache-2.0
//! Budgets: limits on what a trace may come to, for tests that bound an application's writes.
// A recording may come from anybody: no number in it may make this panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod limits;
mod measured;
pub mod report;
mod runs;

pub use limits::{Baseline, From, Held, Judgement, Limits, Tolerance, judge};
pub use measured::{Measured, Parts, Setup};
pub use runs::{Runs, Spread};
