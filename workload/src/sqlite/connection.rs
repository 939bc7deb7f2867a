// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a workload asks of a connection to a database, whichever SQLite it is.

use rusqlite::Result;

/// What is bound to a parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'v> {
    Integer(i64),
    Text(&'v str),
}

/// A connection, for one thread at a time.
pub(crate) trait Connection: Send {
    /// Runs statements; what they answer is passed over.
    fn batch(&mut self, sql: &str) -> Result<()>;

    /// Runs one statement, which is compiled once alone; returns how many rows it changed.
    fn execute(&mut self, sql: &'static str, values: &[Value<'_>]) -> Result<u64>;

    /// The columns of a query's first row as text; None of a NULL, and no column of no row.
    fn ask(&mut self, sql: &str) -> Result<Vec<Option<String>>>;

    /// Leaves the WAL as it is when the last connection closes.
    fn keep_wal(&mut self) -> Result<()>;

    /// Closes it.
    fn close(self: Box<Self>) -> Result<()>;
}
