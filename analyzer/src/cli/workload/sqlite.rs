// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace workload sqlite`.

use std::path::PathBuf;

use clap::value_parser;
use mostrace_workload::{
    AutoVacuum, Caches, Existing, Journal, Locking, Op, Settings, Sync, run as run_workload,
};

use super::choice;
use super::report::Report;

/// Run SQLite transactions, in the manner of Mobibench
///
/// One table (id INTEGER PRIMARY KEY, Value TEXT, creation_date long); BEGIN, the operation, COMMIT; WAL ends
/// with a checkpoint. `record` traces a whole command, so updates and deletions take the rows that an earlier
/// call made:
///
///   mostrace workload sqlite --prepare --op update /mnt/x.db
///   mostrace record -d /dev/loop0 -- mostrace workload sqlite --op update /mnt/x.db
///
/// For a trace of insertions without the making of the table, do the same with --op insert, and --keep in the
/// second call. Give the same --journal, --page-size and --auto-vacuum to both.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Sqlite {
    /// The database, or a folder for mostrace.db; with --threads, name-0.db, name-1.db …
    #[arg(default_value = ".")]
    path: PathBuf,
    /// The operation of a transaction
    #[arg(long, default_value = "insert", value_parser = choice::<Op>())]
    op: Op,
    /// Journal mode
    #[arg(long, default_value = "delete", value_parser = choice::<Journal>())]
    journal: Journal,
    /// PRAGMA synchronous
    #[arg(long, default_value = "full", value_parser = choice::<Sync>())]
    sync: Sync,
    /// PRAGMA locking_mode
    #[arg(long, default_value = "normal", value_parser = choice::<Locking>())]
    locking: Locking,
    /// Threads, each with a database of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// Transactions of each thread
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = value_parser!(u64).range(..=1 << 40))]
    transactions: u64,
    /// Operations in a transaction
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u64).range(1..=1 << 20))]
    per_transaction: u64,
    /// Page size in bytes, a power of two from 512 to 65536
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = page_size)]
    page_size: u32,
    /// PRAGMA auto_vacuum
    #[arg(long, default_value = "full", value_parser = choice::<AutoVacuum>())]
    auto_vacuum: AutoVacuum,
    /// Length of each value
    #[arg(long, value_name = "BYTES", default_value_t = 100,
          value_parser = value_parser!(u32).range(..=i64::from(Settings::MAX_VALUE_SIZE)))]
    value_size: u32,
    /// Pause between transactions
    #[arg(long, value_name = "MS", default_value_t = 0)]
    interval_ms: u64,
    /// Pages in the WAL at which a commit checkpoints; 0 never does
    #[arg(long, value_name = "PAGES", default_value_t = 1000, value_parser = value_parser!(u32).range(..=1 << 30))]
    wal_autocheckpoint: u32,
    /// Leave the -wal file as it is at the end
    #[arg(long)]
    no_checkpoint: bool,
    /// The seed of the values: the same seed stores the same bytes
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only make the database, with the rows that the same command without --prepare will touch
    #[arg(long, conflicts_with = "keep")]
    prepare: bool,
    /// Insert into the existing database
    #[arg(long, conflicts_with = "overwrite")]
    keep: bool,
    /// Remove the existing database with its journals
    #[arg(long)]
    overwrite: bool,
    /// Take SQLite from this shared library, such as a phone's own, and print its version and how it was built
    #[arg(long, value_name = "PATH")]
    sqlite_library: Option<PathBuf>,
    /// Drop the kernel's caches once the database is open, if root allows it
    #[arg(long)]
    drop_caches: bool,
    #[command(flatten)]
    report: Report,
}

impl Sqlite {
    fn settings(&self) -> Settings {
        let existing = match (self.keep, self.overwrite) {
            (true, _) => Existing::Keep,
            (_, true) => Existing::Overwrite,
            _ => Existing::Refuse,
        };
        Settings {
            path: self.path.clone(),
            existing,
            prepare: self.prepare,
            op: self.op,
            journal: self.journal,
            sync: self.sync,
            locking: self.locking,
            threads: self.threads,
            transactions: self.transactions,
            per_transaction: self.per_transaction,
            page_size: self.page_size,
            auto_vacuum: self.auto_vacuum,
            value_size: self.value_size,
            interval_ms: self.interval_ms,
            wal_autocheckpoint: self.wal_autocheckpoint,
            checkpoint: !self.no_checkpoint,
            seed: self.seed,
            library: self.sqlite_library.clone(),
            caches: match self.drop_caches {
                true => Caches::Drop,
                false => Caches::Keep,
            },
        }
    }

    pub fn run(&self) -> anyhow::Result<()> {
        let total = self.transactions.saturating_mul(self.threads.into());
        self.report
            .run(total, |progress| run_workload(&self.settings(), progress))
    }
}

fn page_size(text: &str) -> Result<u32, String> {
    let bytes = text.parse().map_err(|error| format!("{error}"))?;
    if Settings::is_page_size(bytes) {
        Ok(bytes)
    } else {
        Err("a power of two from 512 to 65536".into())
    }
}
