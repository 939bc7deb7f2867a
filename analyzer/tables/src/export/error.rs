// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a trace cannot be written in another tool's format.

use std::io;

use mostrace_trace::output::WriteError;
use mostrace_trace::recording;
use polars::prelude::PolarsError;

/// A trace could not be written in another tool's format.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The output cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The trace cannot be read.
    #[error(transparent)]
    Recording(#[from] recording::Error),
    /// The rows cannot be read.
    #[error("temporary files: {0}")]
    Rows(#[from] PolarsError),
    /// The output cannot be written, in a loop over the rows.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The format needs absolute times, which the trace lacks.
    #[error("the format needs the time by the wall clock, which this trace lacks")]
    NoClock,
    /// The format has a record for each block, and the requests are longer than a device's.
    #[error(
        "its {requests} requests access {blocks} blocks of 4 KiB, more than oracle-general writes: some 1,024 for each request"
    )]
    TooLong {
        /// Reads and writes.
        requests: usize,
        /// The blocks that they access, each as often as it is accessed.
        blocks: u64,
    },
}

pub(super) type Result<T> = std::result::Result<T, Error>;

impl From<mostrace_bundle::Error> for Error {
    fn from(error: mostrace_bundle::Error) -> Error {
        Error::Recording(error.into())
    }
}
