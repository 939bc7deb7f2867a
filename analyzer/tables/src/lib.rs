// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of a trace: what [`mostrace_trace`] says of each row, summed up.
//!
//! 1. [`facts`] keeps the rows as polars frames in batches, with the one catalogue of columns.
//! 2. [`tables`] sums them up, and [`export`] writes files.
//! 3. [`analysis`] does all of this, and its page has an example: [`analysis::Analysis::open`] reads a trace by its path.
//!
//! [`ledger`] keeps the sums of each hour for years.
#![forbid(unsafe_code)]

pub mod analysis;
mod caught;
pub mod export;
pub mod facts;
pub mod ledger;
pub mod nearest;
mod sql;
pub mod tables;
