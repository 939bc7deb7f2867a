// SPDX-License-Identifier: MIT OR Apache-2.0
//! The analyser of mostrace: from a saved trace to tables.
//!
//! A trace passes through these modules, each of which needs only those before it:
//!
//! 1. [`recording`] opens what the user named: a bundle, the segments of one, or the bare files of blktrace.
//! 2. [`blktrace`] reads the block events in the order of time and yields completed requests.
//! 3. [`attribute`] cuts each request into rows: who wrote these sectors, to which file, and what they hold.
//! 4. [`causes`] finds who caused each row, by system calls, jbd2's handles and f2fs's checkpoints.
//! 5. [`pipeline`] is the loop over 2 to 4, for saved traces and for live ones ([`live`]). [`transactions`] counts what
//!    applications committed, by their system calls.
#![cfg_attr(
    feature = "analyze",
    doc = "6. [`facts`] keeps the rows as polars frames in batches, with the one catalogue of columns."
)]
#![cfg_attr(
    feature = "analyze",
    doc = "7. [`tables`] sums them up; [`export`] and [`report`] write files."
)]
#![cfg_attr(
    feature = "analyze",
    doc = "\n[`analysis`] does all of this, and its page has an example: [`analysis::Analysis::open`] reads a trace by its path. [`lab`] holds\ntraces against limits, and records matrices of them."
)]
#![forbid(unsafe_code)]

#[cfg(feature = "analyze")]
pub mod analysis;
pub mod attribute;
pub mod blktrace;
#[cfg(feature = "analyze")]
mod caught;
pub mod causes;
#[cfg(feature = "analyze")]
pub mod export;
#[cfg(feature = "analyze")]
pub mod facts;
#[cfg(feature = "analyze")]
pub mod lab;
#[cfg(feature = "analyze")]
pub mod ledger;
pub mod live;
#[cfg(feature = "analyze")]
pub mod nearest;
pub mod pipeline;
pub mod recording;
#[cfg(feature = "analyze")]
pub mod report;
#[cfg(feature = "analyze")]
mod sql;
#[cfg(feature = "analyze")]
mod symbols;
#[cfg(feature = "analyze")]
pub mod tables;
mod tally;
pub mod text;
pub mod transactions;
