// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of a workload on SQLite.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::choice::choice;
use crate::{Caches, Choice, Error, Result};

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The database, or a folder in which it is called `mostrace.db`. See [`Settings::databases`].
    pub path: PathBuf,
    /// Handling of a database that exists already.
    pub existing: Existing,
    /// True to only make what a later run needs, in one transaction: the empty table for insertions, and the rows that
    /// updates or deletions will change.
    pub prepare: bool,
    /// The operation of a transaction.
    pub op: Op,
    /// Journal mode. If a kept database has another mode, the change is a write in the setup phase.
    pub journal: Journal,
    /// `PRAGMA synchronous`.
    pub sync: Sync,
    /// Locking mode.
    pub locking: Locking,
    /// Number of threads, each with a database of its own; at least 1.
    pub threads: u32,
    /// Number of transactions of each thread.
    pub transactions: u64,
    /// Number of rows inserted, updated or deleted in a transaction; at least 1.
    pub per_transaction: u64,
    /// Page size in bytes: a power of two from 512 to 65536.
    pub page_size: u32,
    /// Automatic vacuum.
    pub auto_vacuum: AutoVacuum,
    /// Length of a Value in bytes (ASCII characters), at most 100,000,000.
    pub value_size: u32,
    /// Pause between the end of a transaction and the start of the next, ms. Pauses count in the elapsed time but not
    /// in latencies.
    pub interval_ms: u64,
    /// Number of pages in the WAL at which a commit runs a checkpoint; 0 never does.
    pub wal_autocheckpoint: u32,
    /// True to end with a checkpoint of the WAL and remove it. Otherwise the -wal file stays, with frames that are not
    /// yet in the database.
    pub checkpoint: bool,
    /// Seed of the values; thread n uses seed + n. The same seed stores the same bytes.
    pub seed: u64,
    /// A shared library to use as SQLite instead of the built-in one.
    pub library: Option<PathBuf>,
    /// The setting for dropping the kernel's caches after the setup phase.
    pub caches: Caches,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            path: PathBuf::from("."),
            existing: Existing::Refuse,
            prepare: false,
            op: Op::Insert,
            journal: Journal::Delete,
            sync: Sync::Full,
            locking: Locking::Normal,
            threads: 1,
            transactions: 1000,
            per_transaction: 1,
            page_size: 4096,
            auto_vacuum: AutoVacuum::Full,
            value_size: 100,
            interval_ms: 0,
            wal_autocheckpoint: 1000,
            checkpoint: true,
            seed: 1,
            library: None,
            caches: Caches::Keep,
        }
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
        let mut table: BTreeMap<String, String> = [
            ("existing", self.existing.name().to_owned()),
            ("prepare", self.prepare.to_string()),
            ("op", self.op.name().to_owned()),
            ("journal", self.journal.name().to_owned()),
            ("sync", self.sync.name().to_owned()),
            ("locking", self.locking.name().to_owned()),
            ("threads", self.threads.to_string()),
            ("transactions", self.transactions.to_string()),
            ("per_transaction", self.per_transaction.to_string()),
            ("page_size", self.page_size.to_string()),
            ("auto_vacuum", self.auto_vacuum.name().to_owned()),
            ("value_size", self.value_size.to_string()),
            ("interval_ms", self.interval_ms.to_string()),
            ("wal_autocheckpoint", self.wal_autocheckpoint.to_string()),
            ("checkpoint", self.checkpoint.to_string()),
            ("seed", self.seed.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
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
