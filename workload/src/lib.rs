// SPDX-License-Identifier: MIT OR Apache-2.0
//! SQLite workloads in the manner of Mobibench: the IO that mostrace measures.
//!
//! ```text
//! CREATE TABLE item (id INTEGER PRIMARY KEY, Value TEXT, creation_date long)
//! BEGIN; INSERT INTO item (Value, creation_date) VALUES (100 characters, a date); COMMIT;   × transactions
//! ```
//!
//! A run has three phases, counted apart ([`Phase`]):
//!
//! 1. **setup**: open the database, make it where it is not there, read what rows it has;
//! 2. **transactions**: the loop, in one thread per database; the only part whose time is reported;
//! 3. **finish**: the checkpoint of WAL, and closing.
//!
//! `record` traces a whole command, all three phases, so [`Payload::file_bytes`] covers all three too. For a trace
//! of nothing but transactions, make the database in a call of its own ([`Settings::prepare`]), which `update` and
//! `delete` ask for in any case, and have the traced call use it ([`Existing::Keep`]).
//!
//! Each thread has a database file of its own, so threads meet in the filesystem's journal and in the device, and
//! not in SQLite's lock.
//!
//! [`Payload::file_bytes`]: mostrace_bundle::manifest::Payload
#![forbid(unsafe_code)]

mod choice;
mod counters;
mod database;
mod error;
mod existing;
mod latency;
mod outcome;
mod run;
mod settings;

pub use choice::Choice;
pub use counters::Written;
pub use error::{Error, Result};
pub use latency::{Latency, write_latencies};
pub use outcome::{Outcome, Phase, write_payload};
pub use run::run;
pub use settings::{AutoVacuum, Existing, Journal, Locking, Op, Settings, Sync};

/// Version of the SQLite that is built in, as `3.54.1`.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}

/// The call with which the built-in SQLite syncs files: `fsync` or `fdatasync`.
///
/// It is settled when SQLite is compiled: `LIBSQLITE3_FLAGS=-DHAVE_FDATASYNC` gives fdatasync, as in distributions
/// and today's Android, and without it SQLite takes fsync, as old Android builds did. Nothing in SQLite tells at
/// run time, so this looks at the variable that its build script looked at.
pub fn sync_call() -> &'static str {
    match option_env!("LIBSQLITE3_FLAGS") {
        Some(flags) if flags.contains("HAVE_FDATASYNC") => "fdatasync",
        _ => "fsync",
    }
}
