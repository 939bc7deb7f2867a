// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of workloads on files: the access pattern and the kind of sync.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::ArgAction::SetTrue;
use clap::builder::{BoolValueParser, TypedValueParser};
use clap::value_parser;
use mostrace_bundle::units;
use serde::{Deserialize, Serialize};

use crate::choice::{self, choice, named};
use crate::{Caches, Error, Result};

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(default, deny_unknown_fields)]
pub struct FileSettings {
    /// The folder for the files
    #[arg(default_value = ".")]
    pub path: PathBuf,
    /// The records that are accessed, and their order
    #[arg(long, default_value = "write", value_parser = named::<Pattern>())]
    pub pattern: Pattern,
    /// The way in which they are written, and what is waited for
    #[arg(long, default_value = "normal", value_parser = named::<Mode>())]
    pub mode: Mode,
    /// The size of each thread's file
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = units::size)]
    pub file_size: u64,
    /// The size of each record
    #[arg(long, value_name = "SIZE", default_value = "4k", value_parser = record_size)]
    pub record_size: u32,
    /// Threads, each with a file of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=1024))]
    pub threads: u32,
    /// The share of repeated records in a random order
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = value_parser!(u8).range(..100))]
    pub overlap: u8,
    // Thread n uses seed + n.
    /// The seed of the contents and the order
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Pause between records
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub interval_ms: u64,
    /// Do not drop the kernel's caches once the files are made, as root does by default
    #[arg(long = "keep-caches", action = SetTrue, value_parser = BoolValueParser::new().map(|keep| Caches::from(!keep)))]
    pub caches: Caches,
    /// Only make the files that the same command without this option reads or writes
    #[arg(long)]
    pub prepare: bool,
}

fn record_size(text: &str) -> std::result::Result<u32, String> {
    u32::try_from(units::size(text)?).map_err(|error| error.to_string())
}

impl Default for FileSettings {
    fn default() -> Self {
        choice::defaults()
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
        let mut table = choice::table(self, &["caches", "path"]);
        table.insert("path".into(), self.path.display().to_string());
        table
    }
}
