// SPDX-License-Identifier: MIT OR Apache-2.0
//! A ledger: what each application caused, hour by hour, for weeks.
//!
//! ```text
//! segments ─ live::follow ─ Keeper ─ Hour, one after the other ─ Days: FOLDER/2026-11-25.parquet, a file a day
//!                                                                  └─ Sums: by package, layer, day …
//! ```
//!
//! The events themselves are forgotten. Every byte that the device completed is in one row of its hour; what nobody is known to
//! have caused is in rows without a command. The row of the hour itself says for how long it was watched, what the kernel
//! counted, and what was lost.
// A recording may come from anybody: no number in it may make this panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod day;
mod days;
mod hour;
mod keeper;
mod latencies;
mod limits;
mod running;
mod sums;
mod timeline;
mod trial;
mod uid_io;

pub use day::LONGEST;
pub use days::{Days, LOCK, RUNNING};
pub use hour::{Figures, Gap, Hour, Key, MOST_ROWS, OTHERS, Reading, Watched};
pub use keeper::{Drive, Keeper};
pub use latencies::Latencies;
pub use limits::{Limits, Over};
pub use running::Running;
pub use sums::{COLUMNS, Sums, Time};
pub use timeline::{Row, Timeline};
pub use trial::{Trial, try_days};
pub use uid_io::UidIo;

/// A ledger could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: std::path::PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The folder cannot be written.
    #[error(transparent)]
    Folder(#[from] mostrace_bundle::Error),
    /// Nobody ever kept a ledger in the folder.
    #[error("{}: is no ledger: it has no day of one (YYYY-MM-DD.parquet)", .0.display())]
    NoLedger(std::path::PathBuf),
    /// A file is no day of a ledger.
    #[error("{}: {source}", path.display())]
    Day {
        /// The file.
        path: std::path::PathBuf,
        /// The cause.
        source: polars::prelude::PolarsError,
    },
    /// The rows of hours do not belong together.
    #[error("{0}")]
    Hours(polars::prelude::PolarsError),
    /// The file of limits is malformed.
    #[error("{}: {what}", path.display())]
    Limits {
        /// The file.
        path: std::path::PathBuf,
        /// The fault.
        what: String,
    },
}

/// The result of reading or writing a ledger.
pub type Result<T> = std::result::Result<T, Error>;
