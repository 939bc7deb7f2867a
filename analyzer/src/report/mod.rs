// SPDX-License-Identifier: MIT OR Apache-2.0
//! The HTML report: one file that needs no network.
//!
//! ```text
//! Analysis ─┬─ Groups ───────── icicle, processes, files ─┐
//!           ├─ Scan: every row ─ timeline, density,       ├─ Sheet (one trace) ─ page (HTML)
//!           │                    latency, waterfall       │
//!           └─ calls ─────────── transactions, syncs ─────┘
//! ```
//!
//! Everything is summed up when the page is made, so that its size does not grow with the trace.
// A recording may come from anybody: no number in it may make this panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod colour;
mod culprits;
mod density;
mod grid;
mod icicle;
mod latency;
mod page;
mod scan;
mod sheet;
mod syncs;
mod timeline;
mod waterfall;

pub use icicle::{Basis, Icicle, Node};
pub use page::page;
pub use sheet::{Error, Sheet};
