// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace workload sql`.

use mostrace_workload::{SqlSettings, run_sql};

use super::report::Report;

/// Replay an application's SQL statements
///
/// FILE is SQL as the sqlite3 shell reads it: when a statement fails, the lines behind it are run, unless
/// `.bail on` came before. Failures are counted, and so are the shell's commands that change databases, such as
/// .import, which are left out. A comment `--@ SECONDS` gives the time, since the log began, at which the
/// statements after it were run:
///
///   --@ 0.5
///   INSERT INTO item VALUES (1, 'a');
///   --@ 1.25
///   BEGIN; DELETE FROM item WHERE id = 1; COMMIT;
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Sql {
    #[command(flatten)]
    settings: SqlSettings,
    #[command(flatten)]
    report: Report,
}

impl Sql {
    pub fn run(&self) -> anyhow::Result<()> {
        self.report
            .run(0, |progress| run_sql(&self.settings, progress))
    }
}
