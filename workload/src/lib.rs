// SPDX-License-Identifier: MIT OR Apache-2.0
//! File and SQLite workloads in the manner of Mobibench: the IO that mostrace measures.
//!
//! | function | what |
//! | --- | --- |
//! | [`run`] | SQLite transactions of one kind ([`Settings`]) |
//! | [`run_file`] | records of a file read or written ([`FileSettings`]) |
//! | [`run_names`] | names made, changed, removed ([`NameSettings`]) |
//! | [`run_mobibench`] | what Mobibench does with the same options ([`Mobibench`]) |
//! | [`run_mobigen`] | a script of MobiGen's replayed ([`MobigenSettings`]) |
//! | [`run_sql`] | an application's statements replayed ([`SqlSettings`]) |
//! | [`run_fill`] | a volume filled, and its latency before and after ([`FillSettings`]) |
//!
//! A run of SQLite's has three phases, counted apart ([`Phase`]):
//!
//! ```text
//! CREATE TABLE item (id INTEGER PRIMARY KEY, Value TEXT, creation_date long)
//! BEGIN; INSERT INTO item (Value, creation_date) VALUES (100 characters, a date); COMMIT;   × transactions
//! ```
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
pub use sql::{SqlSettings, Timing, run_sql};
pub use sqlite::{AutoVacuum, Existing, Journal, Locking, Op, Settings, Sync, run};

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
