// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace workload mobibench`.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use clap::Parser;
use mostrace_workload::{
    Mobibench as Settings, MobigenSettings, Outcome, run_mobibench, run_mobigen,
};

use super::report::Report;

/// Do what Mobibench 1.0.8 does, with its own options (-h lists them)
///
///   mostrace workload mobibench -p /mnt/bench -d 0 -n 1000 -j 3
#[derive(clap::Args)]
#[command(verbatim_doc_comment, disable_help_flag = true)]
pub struct Mobibench {
    /// Mobibench's options
    #[arg(last = true, value_name = "OPTIONS")]
    options: Vec<OsString>,
}

/// Do what Mobibench 1.0.8 does, with its own options
#[derive(Parser)]
#[command(
    name = "mostrace workload mobibench",
    max_term_width = 100,
    args_override_self = true
)]
struct Options {
    #[command(flatten)]
    settings: Settings,
    /// Replay this MobiGen script; every path in it becomes one below PATH/mobigen_temp
    #[arg(short = 'g', value_name = "SCRIPT")]
    script: Option<PathBuf>,
    /// Show no progress
    #[arg(short = 'q')]
    quiet: bool,
    /// Write the latency of each operation, in ns, one a line
    #[arg(short = 'L', value_name = "FILE")]
    latency: Option<PathBuf>,
    /// Write how many operations were done in each second, one a line
    #[arg(short = 'k', value_name = "FILE")]
    iops: Option<PathBuf>,
    /// Print the result as JSON (an option of ours)
    #[arg(long)]
    json: bool,
}

impl Mobibench {
    pub fn run(&self) -> anyhow::Result<()> {
        let name = OsString::from("mobibench");
        let given = std::iter::once(&name).chain(&self.options);
        let options = Options::try_parse_from(given).unwrap_or_else(|error| error.exit());
        let settings = &options.settings;
        let report = Report {
            latency: options.latency.clone(),
            iops: options.iops.clone(),
            json: options.json,
        };
        let is_shown = !options.quiet;
        let outcome = match &options.script {
            Some(script) => {
                let settings = MobigenSettings {
                    script: script.clone(),
                    path: settings.path.join("mobigen_temp"),
                    timing: true,
                };
                report.outcome(0, is_shown, |progress| run_mobigen(&settings, progress))?
            }
            None => report.outcome(options.total(), is_shown, |progress| {
                run_mobibench(settings, progress)
            })?,
        };
        let text = match options.json {
            true => serde_json::to_string_pretty(&outcome)?,
            false => format!("{outcome}\n{}", options.in_its_words(&outcome)),
        };
        Ok(writeln!(std::io::stdout(), "{text}")?)
    }
}

impl Options {
    fn total(&self) -> u64 {
        match self.settings.database {
            Some(_) => self.settings.transactions,
            None => self.settings.file_kib / u64::from(self.settings.record_kib.max(1)),
        }
    }

    /// Returns Mobibench's last lines, in which programs that read its output find the figure.
    fn in_its_words(&self, outcome: &Outcome) -> String {
        let rate = outcome.transactions_per_second.unwrap_or_default();
        let micros = outcome.payload.elapsed_ns / 1000;
        let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
        let time = format!("[TIME] :{seconds:8} sec {micros:06}us. ");
        if self.settings.database.is_some() && self.script.is_none() {
            return format!("{time}\t{rate:.2} Transactions/sec");
        }
        let bytes = rate * f64::from(self.settings.record_kib) * 1024.0;
        let (kib, mib) = (bytes / 1024.0, bytes / 1_048_576.0);
        format!("{time}\t{bytes:.0} B/sec, \t{kib:.2} KB/sec, \t{mib:.2} MB/sec.")
    }
}
