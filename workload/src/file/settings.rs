// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of workloads on files: the access pattern and the kind of sync.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::choice::choice;
use crate::{Caches, Choice, Error, Result};

choice! {
    /// The access pattern. The file exists before the run, except for Append.
    Pattern {
        /// Records are written from the first to the last.
        Write = "write",
        /// Records are written in random order.
        RandomWrite = "random-write",
        /// Records are read from the first to the last.
        Read = "read",
        /// Records are read in random order.
        RandomRead = "random-read",
        /// Records are appended to a new file.
        Append = "append",
    }
}

choice! {
    /// The way in which records are written and made durable. All modes but the mapped ones end with an fsync().
    Mode {
        /// write().
        Normal = "normal",
        /// write() to a file opened with O_SYNC.
        Osync = "osync",
        /// write(), fsync().
        Fsync = "fsync",
        /// write() to a file opened with O_DIRECT.
        Direct = "direct",
        /// write() to a file opened with O_SYNC and O_DIRECT.
        SyncDirect = "sync-direct",
        /// Stores into mapped memory; one msync(MS_SYNC) at the end.
        Mmap = "mmap",
        /// Stores into mapped memory, with msync(MS_ASYNC) after each record.
        MmapAsync = "mmap-async",
        /// Stores into mapped memory, with msync(MS_SYNC) after each record.
        MmapSync = "mmap-sync",
        /// write(), fdatasync().
        Fdatasync = "fdatasync",
    }
}

impl Pattern {
    /// Returns true if records are read.
    pub fn reads(self) -> bool {
        matches!(self, Self::Read | Self::RandomRead)
    }

    /// Returns true if records are accessed in random order.
    pub fn is_random(self) -> bool {
        matches!(self, Self::RandomWrite | Self::RandomRead)
    }
}

impl Mode {
    /// Returns true if records are stored into mapped memory.
    pub fn is_mapped(self) -> bool {
        matches!(self, Self::Mmap | Self::MmapAsync | Self::MmapSync)
    }

    /// Returns true if IO bypasses the page cache.
    pub fn is_direct(self) -> bool {
        matches!(self, Self::Direct | Self::SyncDirect)
    }
}

/// Settings of a workload on files. The default is Mobibench's: 1 MiB in records of 4 KiB.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FileSettings {
    /// The folder for the files, which are called `test.dat0`, `test.dat1` and so on.
    pub path: PathBuf,
    /// The access pattern.
    pub pattern: Pattern,
    /// The way in which records are written and made durable.
    pub mode: Mode,
    /// Size of each thread's file in bytes. Each whole record in it is read or written once.
    pub file_size: u64,
    /// Size of a record in bytes; for O_DIRECT a multiple of 512.
    pub record_size: u32,
    /// Number of threads, each with a file of its own; at least 1.
    pub threads: u32,
    /// For random order: the percentage of records that repeat another one; less than 100.
    pub overlap: u8,
    /// Seed for contents and order; thread n uses seed + n.
    pub seed: u64,
    /// The setting for dropping the kernel's caches after the files were made.
    pub caches: Caches,
    /// Pause between two records of a thread, ms.
    pub interval_ms: u64,
    /// True to only make the files that a later run without this setting needs.
    pub prepare: bool,
}

impl Default for FileSettings {
    fn default() -> Self {
        Self {
            path: PathBuf::from("."),
            pattern: Pattern::Write,
            mode: Mode::Normal,
            file_size: 1 << 20,
            record_size: 4096,
            threads: 1,
            overlap: 0,
            seed: 1,
            caches: Caches::Drop,
            interval_ms: 0,
            prepare: false,
        }
    }
}

impl FileSettings {
    /// Returns the number of records of each thread.
    pub fn records(&self) -> u64 {
        self.file_size
            .checked_div(self.record_size.into())
            .unwrap_or(0)
    }

    /// Returns the length in bytes of each thread's records.
    pub fn bytes(&self) -> u64 {
        self.records().saturating_mul(self.record_size.into())
    }

    /// Checks the ranges of all settings.
    ///
    /// # Errors
    /// Returns an error if a setting is out of range.
    pub fn check(&self) -> Result<()> {
        let fail = |text: &str| Err(Error::Setting(text.to_owned()));
        if self.threads == 0 {
            return fail("threads start at 1");
        }
        if self.records() == 0 {
            return fail("a file has at least one record");
        }
        if self.overlap >= 100 {
            return fail("less than 100 % of the records can be others once more");
        }
        if self.mode.is_direct() && !self.record_size.is_multiple_of(512) {
            return fail("O_DIRECT takes records of a multiple of 512 bytes");
        }
        if usize::try_from(self.bytes()).is_err() {
            return fail("the file is larger than memory can be");
        }
        Ok(())
    }

    /// Returns the settings by name, as stored in the manifest.
    pub fn table(&self) -> BTreeMap<String, String> {
        [
            ("path", self.path.display().to_string()),
            ("pattern", self.pattern.name().to_owned()),
            ("mode", self.mode.name().to_owned()),
            ("file_size", self.file_size.to_string()),
            ("record_size", self.record_size.to_string()),
            ("threads", self.threads.to_string()),
            ("overlap", self.overlap.to_string()),
            ("seed", self.seed.to_string()),
            ("interval_ms", self.interval_ms.to_string()),
            ("prepare", self.prepare.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}
