// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mobibench's options, named by their letters.

use std::path::PathBuf;

use crate::{Choice, Error, FileSettings, Journal, Mode, Op, Pattern, Result, Sync};

/// Mobibench's options and its defaults. Each comment begins with the option's letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mobibench {
    /// `-p`: the folder, which is made if it does not exist.
    pub path: PathBuf,
    /// `-f`: size of all threads' files together, KiB.
    pub file_kib: u64,
    /// `-r`: size of a record, KiB.
    pub record_kib: u32,
    /// `-a`: the access pattern: 0 write, 1 random write, 2 read, 3 random read, 4 append.
    pub access: u8,
    /// `-y`: the sync mode: 0 normal, 1 O_SYNC, 2 fsync, 3 O_DIRECT, 4 both, 5 mmap, 6 MS_ASYNC, 7 MS_SYNC, 8
    /// fdatasync.
    pub sync_mode: u8,
    /// `-t`: number of threads, 1 to 100.
    pub threads: u32,
    /// `-d`: the database operation: 0 insert, 1 update, 2 delete. None for workloads on files.
    pub database: Option<u8>,
    /// `-n`: number of transactions of all threads together.
    pub transactions: u64,
    /// `-i`: pause after each transaction, ms; at most 10,000.
    pub interval_ms: u64,
    /// `-j`: the journal mode: 0 DELETE, 1 TRUNCATE, 2 PERSIST, 3 WAL, 4 MEMORY, 5 OFF.
    pub journal: u8,
    /// `-s`: synchronous: 0 OFF, 1 NORMAL, 2 FULL.
    pub synchronous: u8,
    /// `-v`: percentage of random records that repeat other ones.
    pub overlap: u8,
    /// `-T`: number of tables, 1 to 20.
    pub tables: u32,
    /// `-D`: number of databases, 1 to 20.
    pub databases: u32,
    /// `-R`: rows are inserted in random order.
    pub random_insert: bool,
    /// A shared library to use as SQLite. Mobibench has no such option.
    pub library: Option<PathBuf>,
}

impl Default for Mobibench {
    fn default() -> Self {
        Self {
            path: PathBuf::from("./mobibench"),
            file_kib: 1024,
            record_kib: 4,
            access: 0,
            sync_mode: 0,
            threads: 1,
            database: None,
            transactions: 10,
            interval_ms: 0,
            journal: 1,
            synchronous: 2,
            overlap: 0,
            tables: 3,
            databases: 1,
            random_insert: false,
            library: None,
        }
    }
}

/// Returns the value with this number, in the order in which Mobibench counts.
fn numbered<T: Copy>(option: char, number: u8, values: &[T]) -> Result<T> {
    let wrong = || Error::Setting(format!("-{option} {number}: Mobibench has no such mode"));
    values.get(usize::from(number)).copied().ok_or_else(wrong)
}

impl Mobibench {
    /// Returns the settings for a workload on files; each thread gets its part of the size.
    ///
    /// # Errors
    /// Returns an error if an option's number has no meaning.
    pub fn file(&self) -> Result<FileSettings> {
        let threads = self.threads.clamp(1, 100);
        let each = self.file_kib / u64::from(threads);
        Ok(FileSettings {
            path: self.path.clone(),
            pattern: numbered('a', self.access, Pattern::ALL)?,
            mode: numbered('y', self.sync_mode, Mode::ALL)?,
            file_size: each.saturating_mul(1024),
            record_size: self.record_kib.saturating_mul(1024),
            threads,
            overlap: self.overlap,
            ..FileSettings::default()
        })
    }

    pub(super) fn op(&self) -> Result<Option<Op>> {
        let op = |number| numbered('d', number, &[Op::Insert, Op::Update, Op::Delete]);
        self.database.map(op).transpose()
    }

    pub(super) fn journal(&self) -> Result<Journal> {
        numbered('j', self.journal, Journal::ALL)
    }

    pub(super) fn synchronous(&self) -> Result<Sync> {
        numbered(
            's',
            self.synchronous,
            &[Sync::Off, Sync::Normal, Sync::Full],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_mobibenchs() {
        let options = Mobibench {
            access: 4,
            sync_mode: 8,
            journal: 3,
            threads: 3,
            ..Mobibench::default()
        };
        let file = options.file().unwrap();
        assert_eq!(
            (file.pattern, file.mode),
            (Pattern::Append, Mode::Fdatasync)
        );
        // 1024 KiB are 341 KiB for each of three threads, and those are 85 records of 4 KiB.
        assert_eq!(file.records(), 85);
        assert_eq!(options.journal().unwrap(), Journal::Wal);
        let wrong = Mobibench {
            sync_mode: 9,
            ..options
        };
        let said = wrong.file().unwrap_err().to_string();
        assert_eq!(said, "-y 9: Mobibench has no such mode");
    }
}
