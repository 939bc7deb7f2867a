// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace workload file`.

use std::path::PathBuf;

use clap::value_parser;
use mostrace_bundle::units;
use mostrace_workload::{Caches, FileSettings, Mode, Pattern, run_file};

use super::choice;
use super::report::Report;

/// Read and write files, in the manner of Mobibench
///
/// Each thread has a file of its own, test.dat0, test.dat1 …, and reads or writes each of its records once.
/// Except for append, the file exists, complete and synced, before. All modes but the mapped ones end with
/// an fsync().
///
///   mostrace workload file --pattern random-write --mode fsync --file-size 32M /mnt
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct File {
    /// The folder for the files
    #[arg(default_value = ".")]
    path: PathBuf,
    /// The records that are accessed, and their order
    #[arg(long, default_value = "write", value_parser = choice::<Pattern>())]
    pattern: Pattern,
    /// The way in which they are written, and what is waited for
    #[arg(long, default_value = "normal", value_parser = choice::<Mode>())]
    mode: Mode,
    /// The size of each thread's file
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = units::size)]
    file_size: u64,
    /// The size of each record
    #[arg(long, value_name = "SIZE", default_value = "4k", value_parser = units::size)]
    record_size: u64,
    /// Threads, each with a file of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// The share of repeated records in a random order
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = value_parser!(u8).range(..100))]
    overlap: u8,
    /// The seed of the contents and the order
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Pause between records
    #[arg(long, value_name = "MS", default_value_t = 0)]
    interval_ms: u64,
    /// Do not drop the kernel's caches once the files are made, as root does by default
    #[arg(long)]
    keep_caches: bool,
    /// Only make the files that the same command without this option reads or writes
    #[arg(long)]
    prepare: bool,
    #[command(flatten)]
    report: Report,
}

impl File {
    pub fn run(&self) -> anyhow::Result<()> {
        let settings = FileSettings {
            path: self.path.clone(),
            pattern: self.pattern,
            mode: self.mode,
            file_size: self.file_size,
            record_size: u32::try_from(self.record_size)?,
            threads: self.threads,
            overlap: self.overlap,
            seed: self.seed,
            caches: match self.keep_caches {
                true => Caches::Keep,
                false => Caches::Drop,
            },
            interval_ms: self.interval_ms,
            prepare: self.prepare,
        };
        let total = settings.records() * u64::from(self.threads);
        self.report
            .run(total, |progress| run_file(&settings, progress))
    }
}
