// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options that all workloads share, and how a workload is run.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use mostrace_bundle::manifest::PAYLOAD_ENV;
use mostrace_bundle::outfile;
use mostrace_workload::{Outcome, Progress, write_iops, write_latencies, write_payload};

use crate::steps::Steps;

/// The options for results.
#[derive(clap::Args)]
#[command(next_help_heading = "Results")]
pub struct Report {
    /// Write the latency of each operation in ns, one a line, when all are done
    #[arg(long, value_name = "FILE")]
    pub latency: Option<PathBuf>,
    /// Write how many operations were done in each second, one a line, when all are done
    #[arg(long, value_name = "FILE")]
    pub iops: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// A file that is created before the long run, so that a wrong path is noticed at once.
struct Beside<'a>(&'a Path, File);

impl<'a> Beside<'a> {
    fn create(path: Option<&'a PathBuf>) -> anyhow::Result<Option<Self>> {
        let create = |path: &'a PathBuf| -> anyhow::Result<Self> {
            let file = outfile::create(path).with_context(|| path.display().to_string())?;
            Ok(Beside(path, file))
        };
        path.map(create).transpose()
    }
}

impl Report {
    /// Runs a workload of `total` operations and prints the result.
    pub fn run(
        &self,
        total: u64,
        workload: impl FnOnce(&Progress) -> mostrace_workload::Result<Outcome>,
    ) -> anyhow::Result<()> {
        let outcome = self.outcome(total, true, workload)?;
        let text = match self.json {
            true => serde_json::to_string_pretty(&outcome)?,
            false => outcome.to_string(),
        };
        Ok(writeln!(std::io::stdout(), "{text}")?)
    }

    /// Runs a workload without printing its result.
    pub fn outcome(
        &self,
        total: u64,
        is_shown: bool,
        workload: impl FnOnce(&Progress) -> mostrace_workload::Result<Outcome>,
    ) -> anyhow::Result<Outcome> {
        let latency = Beside::create(self.latency.as_ref())?;
        let iops = Beside::create(self.iops.as_ref())?;
        let outcome = watched(total, is_shown, workload)?;
        if let Some(path) = std::env::var_os(PAYLOAD_ENV) {
            write_payload(&outcome.payload, Path::new(&path))?;
        }
        if let Some(Beside(path, file)) = latency {
            let written = write_latencies(file, &outcome.operations);
            written.with_context(|| path.display().to_string())?;
        }
        if let Some(Beside(path, file)) = iops {
            let written = write_iops(file, &outcome.operations);
            written.with_context(|| path.display().to_string())?;
        }
        Ok(outcome)
    }
}

/// Runs a workload with a progress bar if there is a terminal.
pub fn watched<T>(
    total: u64,
    is_shown: bool,
    workload: impl FnOnce(&Progress) -> mostrace_workload::Result<T>,
) -> mostrace_workload::Result<T> {
    let progress = Progress::default();
    std::thread::scope(|scope| {
        let _steps = is_shown.then(|| Steps::show(scope, total, || progress.done()));
        workload(&progress)
    })
}
