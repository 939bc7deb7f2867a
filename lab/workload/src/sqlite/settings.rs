// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of a workload on SQLite.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::ArgAction::{SetFalse, SetTrue};
use clap::builder::{BoolValueParser, TypedValueParser};
use clap::value_parser;
use serde::{Deserialize, Serialize};

use crate::choice::{self, choice, named};
use crate::{Caches, Error, Result};

choice! {
    /// The operation of a transaction.
    Op {
        /// Inserts rows at the end of the table; SQLite assigns the ids.
        Insert = "insert",
        /// Updates Value and creation_date in the order of the ids; after the last row it continues with the first.
        Update = "update",
        /// Deletes rows in the order of the ids.
        Delete = "delete",
    }
}

choice! {
    /// `PRAGMA journal_mode`.
    Journal {
        /// The rollback journal is unlinked at commit.
        Delete = "delete",
        /// The rollback journal is truncated to zero length at commit.
        Truncate = "truncate",
        /// The rollback journal's header is zeroed at commit.
        Persist = "persist",
        /// A write-ahead log (WAL) is used.
        Wal = "wal",
        /// The rollback journal is kept in memory.
        Memory = "memory",
        /// There is no journal.
        Off = "off",
    }
}

choice! {
    /// `PRAGMA synchronous`.
    Sync {
        /// SQLite never syncs.
        Off = "off",
        /// SQLite syncs at the most critical moments.
        Normal = "normal",
        /// SQLite's default.
        Full = "full",
        /// Like FULL, and the directory is synced after the journal is unlinked.
        Extra = "extra",
    }
}

choice! {
    /// `PRAGMA auto_vacuum`; any value but none adds pointer-map pages.
    AutoVacuum {
        /// Free pages stay in the file.
        None = "none",
        /// Free pages are removed from the file at every commit.
        Full = "full",
        /// Free pages are removed from the file on request.
        Incremental = "incremental",
    }
}

choice! {
    /// `PRAGMA locking_mode`.
    Locking {
        /// Locks end with the transaction.
        Normal = "normal",
        /// Locks are kept; the rollback journal stays open, and WAL needs no -shm.
        Exclusive = "exclusive",
    }
}

choice! {
    /// Handling of a database that exists already. Updates and deletions always use it.
    Existing {
        /// It is an error.
        Refuse = "refuse",
        /// It is removed, with its journal, -wal and -shm. A file that is not a database is never removed.
        Overwrite = "overwrite",
        /// Rows are inserted into it.
        Keep = "keep",
    }
}

/// Settings of a workload on SQLite. The default is Mobibench's: 100 characters in 4 KiB pages, autovacuum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The database, or a folder for mostrace.db; with --threads, name-0.db, name-1.db …
    #[arg(default_value = ".")]
    pub path: PathBuf,
    /// Handling of a database that exists already.
    #[arg(skip = Existing::Refuse)]
    pub existing: Existing,
    /// The operation of a transaction
    #[arg(long, default_value = "insert", value_parser = named::<Op>())]
    pub op: Op,
    // If a kept database has another mode, the change is a write in the setup phase.
    /// Journal mode
    #[arg(long, default_value = "delete", value_parser = named::<Journal>())]
    pub journal: Journal,
    /// PRAGMA synchronous
    #[arg(long, default_value = "full", value_parser = named::<Sync>())]
    pub sync: Sync,
    /// PRAGMA locking_mode
    #[arg(long, default_value = "normal", value_parser = named::<Locking>())]
    pub locking: Locking,
    /// Threads, each with a database of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=1024))]
    pub threads: u32,
    /// Transactions of each thread
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = value_parser!(u64).range(..=1 << 40))]
    pub transactions: u64,
    /// Operations in a transaction
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u64).range(1..=1 << 20))]
    pub per_transaction: u64,
    /// Page size in bytes, a power of two from 512 to 65536
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = page_size)]
    pub page_size: u32,
    /// PRAGMA auto_vacuum
    #[arg(long, default_value = "full", value_parser = named::<AutoVacuum>())]
    pub auto_vacuum: AutoVacuum,
    // ASCII characters.
    /// Length of each value
    #[arg(long, value_name = "BYTES", default_value_t = 100,
          value_parser = value_parser!(u32).range(..=i64::from(Settings::MAX_VALUE_SIZE)))]
    pub value_size: u32,
    // Pauses count in the elapsed time but not in latencies.
    /// Pause between transactions
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub interval_ms: u64,
    /// Pages in the WAL at which a commit checkpoints; 0 never does
    #[arg(long, value_name = "PAGES", default_value_t = 1000, value_parser = value_parser!(u32).range(..=1 << 30))]
    pub wal_autocheckpoint: u32,
    /// Leave the -wal file as it is at the end
    #[arg(long = "no-checkpoint", action = SetFalse)]
    pub checkpoint: bool,
    // Thread n uses seed + n.
    /// The seed of the values: the same seed stores the same bytes
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Only make the database, with the rows that the same command without --prepare will touch
    #[arg(long)]
    pub prepare: bool,
    /// Take SQLite from this shared library, such as a phone's own, and print its version and how it was built
    #[arg(long = "sqlite-library", value_name = "PATH")]
    pub library: Option<PathBuf>,
    /// Drop the kernel's caches once the database is open, if root allows it
    #[arg(long = "drop-caches", action = SetTrue, value_parser = BoolValueParser::new().map(Caches::from))]
    pub caches: Caches,
}

fn page_size(text: &str) -> std::result::Result<u32, String> {
    let bytes = text.parse().map_err(|error| format!("{error}"))?;
    match Settings::is_page_size(bytes) {
        true => Ok(bytes),
        false => Err("a power of two from 512 to 65536".into()),
    }
}

impl Default for Settings {
    fn default() -> Self {
        choice::defaults()
    }
}

impl Settings {
    /// The largest [`Settings::value_size`], well below SQLite's own limit for a row of 1,000,000,000 bytes.
    pub const MAX_VALUE_SIZE: u32 = 100_000_000;

    /// Returns true if SQLite supports that page size.
    pub fn is_page_size(bytes: u32) -> bool {
        bytes.is_power_of_two() && (512..=65536).contains(&bytes)
    }

    /// Checks the ranges of all settings.
    pub fn check(&self) -> Result<()> {
        let fail = |text: &str| Err(Error::Setting(text.to_owned()));
        if self.threads == 0 || self.per_transaction == 0 {
            return fail("threads and rows in a transaction start at 1");
        }
        if !Self::is_page_size(self.page_size) {
            return fail("the page size is a power of two from 512 to 65536");
        }
        if self.value_size > Self::MAX_VALUE_SIZE {
            return fail("a value has at most 100,000,000 bytes");
        }
        let rows = self.transactions.checked_mul(self.per_transaction);
        if rows.and_then(|rows| i64::try_from(rows).ok()).is_none() {
            return fail("more rows than an id can count");
        }
        Ok(())
    }

    /// Returns the number of rows that each thread changes.
    pub fn rows(&self) -> u64 {
        self.transactions.saturating_mul(self.per_transaction)
    }

    /// Returns the database of each thread: the path itself for one thread, and `name-0.db`, `name-1.db` and so on for
    /// more.
    pub fn databases(&self) -> Vec<PathBuf> {
        let file = if self.path.is_dir() {
            self.path.join("mostrace.db")
        } else {
            self.path.clone()
        };
        match self.threads {
            1 => vec![file],
            threads => (0..threads).map(|thread| numbered(&file, thread)).collect(),
        }
    }

    /// Returns the settings by name, as stored in the manifest; `database.0` and so on are the files.
    pub fn table(&self) -> BTreeMap<String, String> {
        let mut table = choice::table(self, &["path", "library", "caches"]);
        for (thread, path) in self.databases().iter().enumerate() {
            table.insert(format!("database.{thread}"), path.display().to_string());
        }
        table
    }
}

/// Inserts a number into a file name: `dir/name.db` becomes `dir/name-2.db`.
fn numbered(file: &Path, thread: u32) -> PathBuf {
    let mut name = file.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{thread}"));
    if let Some(extension) = file.extension() {
        name.push(".");
        name.push(extension);
    }
    file.with_file_name(name)
}
