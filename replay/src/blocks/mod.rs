// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays the requests of a block trace on a device or in a file.
//!
//! - [`Request`] is what a device was asked for.
//! - [`Order`](order::Order) is what each request waits for, and [`Schedule`](schedule::Schedule) which one goes next.
//! - [`Target`] is the device or file, which nobody else may be using.
//! - [`play`] makes the requests again by io_uring, and [`BlocksOutcome`] says what became of them.

mod order;
mod outcome;
mod player;
mod request;
mod ring;
mod schedule;
mod target;

pub use outcome::{BlocksOutcome, Requests};
pub use player::play;
pub use request::{Op, Request};
pub use schedule::Speed;
pub use target::Target;
