// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace workload file`.

use mostrace_workload::{FileSettings, run_file};

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
    #[command(flatten)]
    settings: FileSettings,
    #[command(flatten)]
    report: Report,
}

impl File {
    pub fn run(&self) -> anyhow::Result<()> {
        let settings = &self.settings;
        let total = settings.records() * u64::from(settings.threads);
        self.report
            .run(total, |progress| run_file(settings, progress))
    }
}
