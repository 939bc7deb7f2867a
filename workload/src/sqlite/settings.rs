// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run is told to do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::choice::choice;
use crate::{Caches, Choice, Error, Result};

choice! {
    /// What a transaction does to its rows.
    Op {
        /// New rows at the end of the table; SQLite gives the ids.
        Insert = "insert",
        /// A new Value and creation_date, in the order of the ids, from the first row again after the last.
        Update = "update",
        /// In the order of the ids.
        Delete = "delete",
    }
}

choice! {
    /// `PRAGMA journal_mode`.
    Journal {
        /// The rollback journal is unlinked at commit.
        Delete = "delete",
        /// The rollback journal is cut to nothing at commit.
        Truncate = "truncate",
        /// The rollback journal's header is zeroed at commit.
        Persist = "persist",
        /// The write-ahead log.
        Wal = "wal",
        /// The rollback journal is kept in memory.
        Memory = "memory",
        /// No journal.
        Off = "off",
    }
}

choice! {
    /// `PRAGMA synchronous`.
    Sync {
        /// No sync at all.
        Off = "off",
        /// At the most critical moments.
        Normal = "normal",
        /// SQLite's default.
        Full = "full",
        /// FULL, and the directory after the journal is unlinked.
        Extra = "extra",
    }
}

choice! {
    /// `PRAGMA auto_vacuum`; anything but none adds pointer-map pages.
    AutoVacuum {
        /// Free pages stay in the file.
        None = "none",
        /// Free pages leave the file at every commit.
        Full = "full",
        /// Free pages leave the file when asked to.
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
    /// What becomes of a database that is there already. Updates and deletions always work in it.
    Existing {
        /// It is an error.
        Refuse = "refuse",
        /// It is removed, with its journal, -wal and -shm. A file that is not a database never is.
        Overwrite = "overwrite",
        /// Rows are inserted into it.
        Keep = "keep",
    }
}

/// What a run is told to do. The default is Mobibench's: 100 characters in 4 KiB pages, autovacuum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The database, or a folder for `mostrace.db`. See [`Settings::databases`].
    pub path: PathBuf,
    /// What becomes of a database that is there already.
    pub existing: Existing,
    /// Only make what a later run needs: the empty table for insertions, and as many rows as it will touch for
    /// updates and deletions, in one transaction.
    pub prepare: bool,
    /// What a transaction does.
    pub op: Op,
    /// Journal mode. In a kept database of another mode the change is a write in the setup phase.
    pub journal: Journal,
    /// Syncs.
    pub sync: Sync,
    /// Locking mode.
    pub locking: Locking,
    /// Threads, each with a database of its own; 1 or more.
    pub threads: u32,
    /// Transactions of each thread.
    pub transactions: u64,
    /// Rows inserted, updated or deleted in a transaction; 1 or more.
    pub per_transaction: u64,
    /// Bytes: a power of two from 512 to 65536.
    pub page_size: u32,
    /// Automatic vacuum.
    pub auto_vacuum: AutoVacuum,
    /// Bytes (ASCII characters) of a Value; up to 100,000,000.
    pub value_size: u32,
    /// Milliseconds from the end of a transaction to the start of the next. They are part of the elapsed time, and
    /// not of a latency.
    pub interval_ms: u64,
    /// Pages in the WAL at which a commit checkpoints; 0 never does.
    pub wal_autocheckpoint: u32,
    /// End WAL with a checkpoint and remove it. Without, the -wal file stays behind, unchecked-in.
    pub checkpoint: bool,
    /// Of the values; thread n takes seed + n. The same seed stores the same bytes.
    pub seed: u64,
    /// A shared library to take SQLite from, in place of the one that is built in.
    pub library: Option<PathBuf>,
    /// What becomes of the kernel's caches after the setup.
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
    /// The largest [`Settings::value_size`]: well under SQLite's own limit for a row, 1,000,000,000 bytes.
    pub const MAX_VALUE_SIZE: u32 = 100_000_000;

    /// Whether SQLite takes that page size.
    pub fn is_page_size(bytes: u32) -> bool {
        bytes.is_power_of_two() && (512..=65536).contains(&bytes)
    }

    /// Checks every range.
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

    /// Rows that each thread touches.
    pub fn rows(&self) -> u64 {
        self.transactions.saturating_mul(self.per_transaction)
    }

    /// The database of each thread: the path itself for one thread, and `name-0.db`, `name-1.db` … for more.
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

    /// The settings by name, as a manifest keeps them; `database.0` … are the files.
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

/// `dir/name.db` to `dir/name-2.db`.
fn numbered(file: &Path, thread: u32) -> PathBuf {
    let mut name = file.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{thread}"));
    if let Some(extension) = file.extension() {
        name.push(".");
        name.push(extension);
    }
    file.with_file_name(name)
}
