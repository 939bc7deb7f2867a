// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a saved trace to rows: who wrote each sector, to which file, what it holds, and which call caused it. No tables.
//!
//! A trace passes through these modules, each of which needs only those before it:
//!
//! 1. [`recording`] opens what the user named: a bundle, the segments of one, or the bare files of blktrace.
//! 2. [`blktrace`] reads the block events in the order of time and yields completed requests.
//! 3. [`attribute`] cuts each request into rows: who wrote these sectors, to which file, and what they hold.
//! 4. [`causes`] finds who caused each row, by system calls, jbd2's handles and f2fs's checkpoints.
//! 5. [`pipeline`] is the loop over 2 to 4, for saved traces ([`reading`]) and for live ones ([`live`]). What is made of a trace
//!    is a [`Fold`](pipeline::Fold) of it. [`transactions`] counts what applications committed, by their system calls.
//! 6. [`answer`] says in three facts what a trace shows, given the [`sums`] of its rows. [`origins`] number the names of several
//!    recordings together, and [`labels`] are their words.
#![forbid(unsafe_code)]

pub mod about;
pub mod answer;
pub mod attribute;
pub mod blktrace;
pub mod budget;
pub mod causes;
pub mod charged;
pub mod fitting;
pub mod flash;
pub mod import;
pub mod labels;
pub mod live;
pub mod origins;
pub mod output;
pub mod pipeline;
pub mod reading;
pub mod recording;
pub mod sums;
pub mod symbols;
pub mod tally;
pub mod text;
mod timeline;
pub mod transactions;
pub mod tree;
