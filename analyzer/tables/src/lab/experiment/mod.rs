// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments: a matrix of measurements, each on a filesystem of its own.
//!
//! ```text
//! definition (TOML) → cells → measurements, appended to the results (JSON lines) → table, and what was claimed beside it
//! ```

mod cells;
mod claim;
mod definition;
mod figures;
mod repeat;
mod results;
mod summary;
mod table;
mod verdict;

pub use cells::{Cell, Words};
pub use claim::{Claim, Figure, Kind};
pub use definition::{Definition, Error};
pub use figures::{Figures, Per};
pub use repeat::Repeat;
pub use results::{Results, Run};
pub use table::{claims, table};
pub use verdict::{Tally, Verdict, judge};
