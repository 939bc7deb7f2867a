// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments: a matrix of measurements, each on a filesystem of its own.
//!
//! ```text
//! definition (TOML) → cells → measurements, appended to the results (JSON lines) → table, and what was published beside it
//! ```

mod cells;
mod definition;
mod figures;
mod published;
mod repeat;
mod results;
mod summary;
mod table;

pub use cells::{Cell, Words};
pub use definition::{Definition, Error};
pub use figures::{Figures, Per};
pub use published::{Claim, Figure, Kind, Tally, Verdict, judge};
pub use repeat::Repeat;
pub use results::{Results, Run};
pub use table::{claims, table};
