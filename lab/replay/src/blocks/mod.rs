// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays the requests of a block trace on a device or in a file.
//!
//! - [`Request`] is one request to a device.
//! - [`Order`](order::Order) tells what each request waits for, and [`Schedule`](schedule::Schedule) which one goes next.
//! - [`BlockTarget`] is the device or file; nobody else may be using it.
//! - [`play`] makes the requests again with io_uring, and [`BlocksOutcome`] holds the results.

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
pub use target::BlockTarget;
