// SPDX-License-Identifier: MIT OR Apache-2.0
//! The HTML report: one file that needs no network.
//!
//! ```text
//!                    ┌─ Shares (rows one by one) ─┐
//! Scan: every share ─┤                            ├─ pack ─┐
//!                    └─ Cube (a long trace) ──────┘        ├─ Sheet (one trace) ─ page (HTML)
//! calls ─ calls, transactions ─────────────────────────────┤
//! tables ─ the answer, what is missing, rewrites ─────────┘
//! ```
//!
//! The page of a ledger has the same means: groups over time, and tables (`ledger`).
//!
//! The rows are in the page, and its scripts compute every figure that a selection changes. The rows of a long trace are
//! summed up when the page is made, so that its size does not grow with the trace.
// A recording may come from anybody: no number in it may make this panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod bands;
mod calls;
mod colour;
mod cube;
mod data;
mod error;
mod flash;
mod grid;
mod ladder;
mod lean;
mod ledger;
mod pack;
mod page;
mod rows;
mod scan;
mod sheet;
mod words;

pub use error::Error;
pub use flash::Flash;
pub use ledger::{COLUMNS as LEDGER_COLUMNS, ledger};
pub use page::page;
pub use sheet::Sheet;
