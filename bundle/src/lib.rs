// SPDX-License-Identifier: MIT OR Apache-2.0
#![doc = include_str!("../FORMAT.md")]
#![forbid(unsafe_code)]
// A bundle may come from anybody: no byte of one may make a reader panic.
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::as_conversions,
        clippy::indexing_slicing
    )
)]

mod allowance;
pub mod archive;
pub mod blk_io_trace;
pub mod counters;
pub mod entry;
mod error;
pub mod folder;
pub mod layout;
mod length;
pub mod manifest;
pub mod outfile;
pub mod packages;
mod reader;
pub mod segments;
mod shortfall;
pub mod sparse;
pub mod table;
pub mod temporary;
pub mod units;
mod writer;

pub use counters::{Counter, Counters};
pub use entry::Entry;
pub use error::Error;
pub use folder::Folder;
pub use manifest::Manifest;
pub use packages::Packages;
pub use reader::Bundle;
pub use shortfall::Shortfall;
pub use writer::Writer;
