// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is done to files, and how it is made durable.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::choice::choice;
use crate::{Caches, Choice, Error, Result};

choice! {
    /// Which records, in which order. But for Append they are there before.
    Pattern {
        /// Written from the first to the last.
        Write = "write",
        /// Written in an order of chance.
        RandomWrite = "random-write",
        /// Read from the first to the last.
        Read = "read",
        /// Read in an order of chance.
        RandomRead = "random-read",
        /// Written to a new file, which grows by each.
        Append = "append",
    }
}

choice! {
    /// How records are written, and what is waited for. All but the mapped ones end with an fsync().
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
        /// The same, with msync(MS_ASYNC) after each record.
        MmapAsync = "mmap-async",
        /// The same, with msync(MS_SYNC) after each record.
        MmapSync = "mmap-sync",
        /// write(), fdatasync().
        Fdatasync = "fdatasync",
    }
}

impl Pattern {
    /// Whether records are read.
    pub fn reads(self) -> bool {
        matches!(self, Self::Read | Self::RandomRead)
    }

    /// Whether chance decides which record is next.
    pub fn is_random(self) -> bool {
        matches!(self, Self::RandomWrite | Self::RandomRead)
    }
}

impl Mode {
    /// Whether records are stored into mapped memory.
    pub fn is_mapped(self) -> bool {
        matches!(self, Self::Mmap | Self::MmapAsync | Self::MmapSync)
    }

    /// Whether the page cache is passed by.
    pub fn is_direct(self) -> bool {
        matches!(self, Self::Direct | Self::SyncDirect)
    }
}

/// What is done to files. The default is Mobibench's: 1 MiB of 4 KiB records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FileSettings {
    /// The folder for the files, which are called `test.dat0`, `test.dat1` …
    pub path: PathBuf,
    /// Which records, in which order.
    pub pattern: Pattern,
    /// How they are written.
    pub mode: Mode,
    /// Bytes of each thread's file: its whole records are read or written once.
    pub file_size: u64,
    /// Bytes of a record; of O_DIRECT a multiple of 512.
    pub record_size: u32,
    /// Threads, each with a file of its own; 1 or more.
    pub threads: u32,
    /// Of an order of chance: per cent of the records that are one of the others once more; less than 100.
    pub overlap: u8,
    /// Of the contents and the order; thread n takes seed + n.
    pub seed: u64,
    /// What becomes of the kernel's caches once the files are there.
    pub caches: Caches,
    /// Pause between two records of a thread, ms.
    pub interval_ms: u64,
    /// Only make the files that a run without it finds.
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
    /// Records of each thread.
    pub fn records(&self) -> u64 {
        self.file_size
            .checked_div(self.record_size.into())
            .unwrap_or(0)
    }

    /// Bytes of each thread's records.
    pub fn bytes(&self) -> u64 {
        self.records().saturating_mul(self.record_size.into())
    }

    /// Checks every range.
    ///
    /// # Errors
    /// One is left.
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

    /// The settings by name, as a manifest keeps them.
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
