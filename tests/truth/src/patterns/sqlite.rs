// SPDX-License-Identifier: MIT OR Apache-2.0
//! SQLite databases with each journal mode, used by one process or by two. SQLite's pages cannot be stamped; our
//! versions of its system calls log what it writes.

use std::io;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, params};

use super::Pattern;
use crate::shim;
use crate::site::{Random, Site};
use crate::stamp::How;

/// Each part is a journal mode; for a database of two processes, followed by the pair's name and the process's.
pub const PATTERN: Pattern = Pattern {
    name: "sqlite",
    parts: &[
        "delete",
        "truncate",
        "persist",
        "wal",
        "delete-pair-one",
        "delete-pair-other",
        "wal-pair-one",
        "wal-pair-other",
    ],
    work,
};

const TRANSACTIONS: u64 = 60;

fn work(site: &'static Site, part: &str) -> io::Result<()> {
    let mut words = part.split('-');
    let mode = words.next().unwrap_or(part);
    let (path, how) = match words.next() {
        Some(pair) => (format!("/{mode}-{pair}.db"), How::Shared),
        None => (format!("/{mode}.db"), How::Buffered),
    };
    shim::install(site, how)?;
    transact(site, mode, &path).map_err(io::Error::other)?;
    match shim::writes() {
        0 => Err(io::Error::other(
            "SQLite did not write through the logged calls",
        )),
        _ => Ok(()),
    }
}

/// Sets the journal mode. While another process changes it, SQLite says that the database is locked without waiting for it:
/// <https://www.sqlite.org/wal.html#sometimes_queries_return_sqlite_busy_in_wal_mode>.
fn set_journal_mode(connection: &Connection, mode: &str) -> rusqlite::Result<()> {
    loop {
        match connection.pragma_update(None, "journal_mode", mode) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                std::thread::sleep(Duration::from_millis(10));
            }
            result => return result,
        }
    }
}

fn transact(site: &Site, mode: &str, path: &str) -> rusqlite::Result<()> {
    let mut random = Random::new().expect("the system has random numbers");
    let mut number = |limit| random.below(limit).expect("the system has random numbers");
    let mut connection = Connection::open(site.at(path))?;
    connection.busy_timeout(Duration::from_secs(120))?;
    set_journal_mode(&connection, mode)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Without this, no page would be written to the database before the end.
    connection.pragma_update(None, "wal_autocheckpoint", 40)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.execute_batch("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, b BLOB)")?;
    for at in 0..TRANSACTIONS {
        // Two readers that both want to write would wait for each other.
        let behavior = rusqlite::TransactionBehavior::Immediate;
        let transaction = connection.transaction_with_behavior(behavior)?;
        let bytes = 200 + number(3000) as i64;
        transaction.execute("INSERT INTO t (b) VALUES (randomblob(?))", params![bytes])?;
        if at % 4 == 3 {
            let id = number(at) as i64;
            transaction.execute("UPDATE t SET b = randomblob(900) WHERE id = ?", params![id])?;
            transaction.execute("DELETE FROM t WHERE id = ?", params![id + 1])?;
        }
        transaction.commit()?;
    }
    Ok(())
}
