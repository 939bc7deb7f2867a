// SPDX-License-Identifier: MIT OR Apache-2.0
//! File and SQLite workloads modelled on Mobibench. Their IO is what mostrace measures.
//!
//! | function | what |
//! | --- | --- |
//! | [`run`] | runs SQLite transactions of one kind ([`Settings`]) |
//! | [`run_file`] | reads or writes the records of files ([`FileSettings`]) |
//! | [`run_names`] | makes, renames or removes files ([`NameSettings`]) |
//! | [`run_mobibench`] | does what Mobibench does with the same options ([`Mobibench`]) |
//! | [`run_mobigen`] | replays a MobiGen script ([`MobigenSettings`]) |
//! | [`run_sql`] | replays an application's SQL statements ([`SqlSettings`]) |
//! | [`run_fill`] | fills a volume and measures its latency before and after ([`FillSettings`]) |
//!
//! Each workload has a type with its settings; the defaults of [`Settings`] and [`FileSettings`] are Mobibench's. A run
//! returns an [`Outcome`], which displays as a few lines and whose payload [`write_payload`] passes to `record`. Another
//! thread can poll the run's [`Progress`].
//!
//! ```
//! use mostrace_workload::{Journal, Progress, Settings, run};
//!
//! let folder = tempfile::tempdir()?;
//! let settings = Settings {
//!     path: folder.path().join("x.db"),
//!     journal: Journal::Wal,
//!     transactions: 10,
//!     ..Settings::default()
//! };
//! let outcome = run(&settings, &Progress::default())?;
//! assert_eq!(outcome.payload.transactions, 10);
//! // Each transaction inserts a row with 100 characters and a date of 8 bytes.
//! assert_eq!(outcome.payload.payload_bytes, 10 * 108);
//! println!("{outcome}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A run of SQLite has three phases, which are measured separately ([`Phase`]):
//!
//! ```text
//! CREATE TABLE item (id INTEGER PRIMARY KEY, Value TEXT, creation_date long)
//! BEGIN; INSERT INTO item (Value, creation_date) VALUES (100 characters, a date); COMMIT;   × transactions
//! ```
//!
//! 1. **setup**: open the database, make it if it does not exist, and read the bounds of its rows;
//! 2. **transactions**: the loop, in one thread per database; the only phase whose time is reported;
//! 3. **finish**: the checkpoint of the WAL, and closing.
//!
//! `record` traces a whole command, all three phases, so [`Payload::file_bytes`] covers all three too. For a trace of
//! transactions alone, make the database in a separate run ([`Settings::prepare`]), which `update` and `delete` need
//! anyway, and let the traced run use it ([`Existing::Keep`]).
//!
//! Each thread has a database file of its own, so threads compete in the filesystem's journal and in the device, and
//! not for SQLite's lock.
//!
//! [`Payload::file_bytes`]: mostrace_bundle::manifest::Payload

mod choice;
mod error;
mod file;
mod fill;
mod measure;
mod mobibench;
mod mobigen;
mod names;
mod outcome;
mod payload;
mod sql;
mod sqlite;

pub use choice::Choice;
pub use error::{Error, Result};
pub use file::{FileSettings, Mode, Pattern, run_file};
pub use fill::{FillSettings, Filled, run_fill};
pub use measure::{
    Caches, Cpu, Latency, Measured, Operation, Phase, Progress, Switches, Written, drop_caches,
    write_iops, write_latencies,
};
pub use mobibench::{Mobibench, run_mobibench};
pub use mobigen::{MobigenSettings, run_mobigen};
pub use names::{NameOp, NameSettings, run_names};
pub use outcome::{Outcome, Task};
pub use payload::write_payload;
pub use sql::{SqlSettings, run_sql};
pub use sqlite::{AutoVacuum, Existing, Journal, Locking, Op, Settings, Sync, run};

/// Returns the version of the built-in SQLite, for example `3.54.1`.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}

/// Returns the call with which the built-in SQLite syncs files: `fsync` or `fdatasync`.
///
/// The call is chosen when SQLite is compiled: with `LIBSQLITE3_FLAGS=-DHAVE_FDATASYNC` it is fdatasync, as in
/// distributions and in today's Android; without it, fsync, as in old Android builds. SQLite does not report it at run
/// time, so this function looks at the variable that SQLite's build script used.
pub fn sync_call() -> &'static str {
    match option_env!("LIBSQLITE3_FLAGS") {
        Some(flags) if flags.contains("HAVE_FDATASYNC") => "fdatasync",
        _ => "fsync",
    }
}
