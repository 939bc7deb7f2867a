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
    /// The folder
    #[arg(short = 'p', value_name = "PATH", default_value = "./mobibench")]
    path: PathBuf,
    /// KiB of all threads' files together
    #[arg(short = 'f', value_name = "KIB", default_value_t = 1024)]
    file_kib: u64,
    /// KiB of a record
    #[arg(short = 'r', value_name = "KIB", default_value_t = 4)]
    record_kib: u32,
    /// 0 write, 1 random write, 2 read, 3 random read, 4 append
    #[arg(short = 'a', value_name = "MODE", default_value_t = 0)]
    access: u8,
    /// 0 normal, 1 O_SYNC, 2 fsync, 3 O_DIRECT, 4 sync+direct, 5 mmap, 6 mmap+MS_ASYNC, 7 mmap+MS_SYNC, 8 fdatasync
    #[arg(short = 'y', value_name = "MODE", default_value_t = 0)]
    sync_mode: u8,
    /// Threads, at most 100
    #[arg(short = 't', value_name = "N", default_value_t = 1)]
    threads: u32,
    /// Work on databases: 0 insert, 1 update, 2 delete
    #[arg(short = 'd', value_name = "OP")]
    database: Option<u8>,
    /// Transactions of all threads together
    #[arg(short = 'n', value_name = "N", default_value_t = 10)]
    transactions: u64,
    /// ms after each transaction
    #[arg(short = 'i', value_name = "MS", default_value_t = 0)]
    interval_ms: u64,
    /// 0 DELETE, 1 TRUNCATE, 2 PERSIST, 3 WAL, 4 MEMORY, 5 OFF
    #[arg(short = 'j', value_name = "MODE", default_value_t = 1)]
    journal: u8,
    /// 0 OFF, 1 NORMAL, 2 FULL
    #[arg(short = 's', value_name = "MODE", default_value_t = 2)]
    synchronous: u8,
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
    /// Per cent of random records that repeat others
    #[arg(short = 'v', value_name = "PERCENT", default_value_t = 0)]
    overlap: u8,
    /// Tables, at most 20
    #[arg(short = 'T', value_name = "N", default_value_t = 3)]
    tables: u32,
    /// Databases, at most 20
    #[arg(short = 'D', value_name = "N", default_value_t = 1)]
    databases: u32,
    /// Insert rows in a random order; Mobibench requires a word here, which is ignored
    #[arg(short = 'R', value_name = "WORD")]
    random_insert: Option<String>,
    /// Take SQLite from this shared library (an option of ours)
    #[arg(long, value_name = "PATH")]
    sqlite_library: Option<PathBuf>,
    /// Print the result as JSON (an option of ours)
    #[arg(long)]
    json: bool,
}

impl Mobibench {
    pub fn run(&self) -> anyhow::Result<()> {
        let name = OsString::from("mobibench");
        let given = std::iter::once(&name).chain(&self.options);
        let options = Options::try_parse_from(given).unwrap_or_else(|error| error.exit());
        let settings = options.settings();
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
                    path: options.path.join("mobigen_temp"),
                    timing: true,
                };
                report.outcome(0, is_shown, |progress| run_mobigen(&settings, progress))?
            }
            None => report.outcome(options.total(), is_shown, |progress| {
                run_mobibench(&settings, progress)
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
    fn settings(&self) -> Settings {
        Settings {
            path: self.path.clone(),
            file_kib: self.file_kib,
            record_kib: self.record_kib,
            access: self.access,
            sync_mode: self.sync_mode,
            threads: self.threads,
            database: self.database,
            transactions: self.transactions,
            interval_ms: self.interval_ms,
            journal: self.journal,
            synchronous: self.synchronous,
            overlap: self.overlap,
            tables: self.tables,
            databases: self.databases,
            random_insert: self.random_insert.is_some(),
            library: self.sqlite_library.clone(),
        }
    }

    fn total(&self) -> u64 {
        match self.database {
            Some(_) => self.transactions,
            None => self.file_kib / u64::from(self.record_kib.max(1)),
        }
    }

    /// Returns Mobibench's last lines, in which programs that read its output find the figure.
    fn in_its_words(&self, outcome: &Outcome) -> String {
        let rate = outcome.transactions_per_second.unwrap_or_default();
        let micros = outcome.payload.elapsed_ns / 1000;
        let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
        let time = format!("[TIME] :{seconds:8} sec {micros:06}us. ");
        if self.database.is_some() && self.script.is_none() {
            return format!("{time}\t{rate:.2} Transactions/sec");
        }
        let bytes = rate * f64::from(self.record_kib) * 1024.0;
        let (kib, mib) = (bytes / 1024.0, bytes / 1_048_576.0);
        format!("{time}\t{bytes:.0} B/sec, \t{kib:.2} KB/sec, \t{mib:.2} MB/sec.")
    }
}
