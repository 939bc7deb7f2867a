// SPDX-License-Identifier: MIT OR Apache-2.0
//! The transactions that were found in the calls, for those who ask for a row of each.

use polars::prelude::{PolarsError, PolarsResult, polars_err};

use super::Facts;
use mostrace_trace::attribute::Task;

/// A committed transaction of SQLite's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Committed {
    /// Index of the recording.
    pub origin: usize,
    /// A thread of the process that committed it.
    pub task: Task,
    /// Inode and generation of the file whose call committed it.
    pub file: (u64, u32),
    /// Its start, ns in the trace's clock.
    pub start_ns: u64,
    /// Its end, ns in the trace's clock.
    pub end_ns: u64,
}

impl Facts {
    /// Keeps the transactions of all recordings.
    pub(crate) fn keep_transactions(&mut self, all: Vec<Committed>) {
        self.transactions = Some(all);
    }

    /// Returns the transactions of all recordings in the order of their commits.
    ///
    /// # Errors
    /// Returns an error if nobody has looked for them: that is not the same as none.
    pub(crate) fn transactions(&self) -> PolarsResult<&[Committed]> {
        let none = || -> PolarsError { polars_err!(ComputeError: "transactions were not read") };
        self.transactions.as_deref().ok_or_else(none)
    }
}
