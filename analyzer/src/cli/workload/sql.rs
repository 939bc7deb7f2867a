// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace workload sql`.

use std::path::PathBuf;

use mostrace_workload::{SqlSettings, Timing, run_sql};

use super::report::Report;

/// Replay an application's SQL statements
///
/// FILE is SQL as the sqlite3 shell reads it. A comment `--@ SECONDS` gives the time, since the log began, at
/// which the statements after it were run:
///
///   --@ 0.5
///   INSERT INTO item VALUES (1, 'a');
///   --@ 1.25
///   BEGIN; DELETE FROM item WHERE id = 1; COMMIT;
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Sql {
    /// The statements
    file: PathBuf,
    /// The database; created if it does not exist
    #[arg(default_value = "mostrace.db")]
    database: PathBuf,
    /// Run the statements one after the other, whatever the log's times
    #[arg(long)]
    no_timing: bool,
    /// Take SQLite from this shared library
    #[arg(long, value_name = "PATH")]
    sqlite_library: Option<PathBuf>,
    #[command(flatten)]
    report: Report,
}

impl Sql {
    pub fn run(&self) -> anyhow::Result<()> {
        let settings = SqlSettings {
            log: self.file.clone(),
            database: self.database.clone(),
            timing: match self.no_timing {
                true => Timing::None,
                false => Timing::Kept,
            },
            library: self.sqlite_library.clone(),
        };
        self.report.run(0, |progress| run_sql(&settings, progress))
    }
}
