// SPDX-License-Identifier: MIT OR Apache-2.0
//! The operations that workloads need of a database connection, independent of which SQLite is used.

use rusqlite::Result;

/// A value that is bound to a parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'v> {
    Integer(i64),
    Text(&'v str),
}

/// A connection, used by one thread at a time.
pub(crate) trait Connection: Send {
    /// Runs statements and ignores the rows that they return.
    fn batch(&mut self, sql: &str) -> Result<()>;

    /// Runs one statement, which is compiled only once. Returns the number of rows that it changed.
    fn execute(&mut self, sql: &'static str, values: &[Value<'_>]) -> Result<u64>;

    /// Returns the columns of a query's first row as text: None for a NULL, and an empty list if there is no row.
    fn ask(&mut self, sql: &str) -> Result<Vec<Option<String>>>;

    /// Keeps SQLite from checkpointing the WAL when the last connection closes.
    fn keep_wal(&mut self) -> Result<()>;

    /// Closes the connection.
    fn close(self: Box<Self>) -> Result<()>;
}
