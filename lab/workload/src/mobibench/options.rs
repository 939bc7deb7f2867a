// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mobibench's options, named by their letters.

use std::path::PathBuf;

use crate::{Choice, Error, FileSettings, Journal, Mode, Op, Pattern, Result, Sync};

/// Mobibench's options and its defaults.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
pub struct Mobibench {
    /// The folder
    #[arg(short = 'p', value_name = "PATH", default_value = "./mobibench")]
    pub path: PathBuf,
    /// KiB of all threads' files together
    #[arg(short = 'f', value_name = "KIB", default_value_t = 1024)]
    pub file_kib: u64,
    /// KiB of a record
    #[arg(short = 'r', value_name = "KIB", default_value_t = 4)]
    pub record_kib: u32,
    /// 0 write, 1 random write, 2 read, 3 random read, 4 append
    #[arg(short = 'a', value_name = "MODE", default_value_t = 0)]
    pub access: u8,
    /// 0 normal, 1 O_SYNC, 2 fsync, 3 O_DIRECT, 4 sync+direct, 5 mmap, 6 mmap+MS_ASYNC, 7 mmap+MS_SYNC, 8 fdatasync
    #[arg(short = 'y', value_name = "MODE", default_value_t = 0)]
    pub sync_mode: u8,
    /// Threads, at most 100
    #[arg(short = 't', value_name = "N", default_value_t = 1)]
    pub threads: u32,
    /// Work on databases: 0 insert, 1 update, 2 delete
    #[arg(short = 'd', value_name = "OP")]
    pub database: Option<u8>,
    /// Transactions of all threads together
    #[arg(short = 'n', value_name = "N", default_value_t = 10)]
    pub transactions: u64,
    /// ms after each transaction
    #[arg(short = 'i', value_name = "MS", default_value_t = 0)]
    pub interval_ms: u64,
    /// 0 DELETE, 1 TRUNCATE, 2 PERSIST, 3 WAL, 4 MEMORY, 5 OFF
    #[arg(short = 'j', value_name = "MODE", default_value_t = 1)]
    pub journal: u8,
    /// 0 OFF, 1 NORMAL, 2 FULL
    #[arg(short = 's', value_name = "MODE", default_value_t = 2)]
    pub synchronous: u8,
    /// Per cent of random records that repeat others
    #[arg(short = 'v', value_name = "PERCENT", default_value_t = 0)]
    pub overlap: u8,
    /// Tables, at most 20
    #[arg(short = 'T', value_name = "N", default_value_t = 3)]
    pub tables: u32,
    /// Databases, at most 20
    #[arg(short = 'D', value_name = "N", default_value_t = 1)]
    pub databases: u32,
    /// Insert rows in a random order; Mobibench requires a word here, which is ignored
    #[arg(short = 'R', value_name = "WORD")]
    pub random_insert: Option<String>,
    /// Take SQLite from this shared library (an option of ours)
    #[arg(long = "sqlite-library", value_name = "PATH")]
    pub library: Option<PathBuf>,
}

impl Default for Mobibench {
    fn default() -> Self {
        crate::choice::defaults()
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
