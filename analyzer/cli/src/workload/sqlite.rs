// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace workload sqlite`.

use mostrace_workload::{Existing, Settings, run as run_workload};

use super::report::Report;

/// Run SQLite transactions, in the manner of Mobibench
///
/// One table (id INTEGER PRIMARY KEY, Value TEXT, creation_date long); BEGIN, the operation, COMMIT; WAL ends
/// with a checkpoint. `record` traces a whole command, so updates and deletions take the rows that an earlier
/// call made:
///
///   mostrace workload sqlite --prepare --op update /mnt/x.db
///   mostrace record -d /dev/loop0 -- mostrace workload sqlite --op update /mnt/x.db
///
/// For a trace of insertions without the making of the table, do the same with --op insert, and --keep in the
/// second call. Give the same --journal, --page-size and --auto-vacuum to both.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Sqlite {
    #[command(flatten)]
    settings: Settings,
    /// Insert into the existing database
    #[arg(long, conflicts_with_all = ["overwrite", "prepare"])]
    keep: bool,
    /// Remove the existing database with its journals
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    report: Report,
}

impl Sqlite {
    fn settings(&self) -> Settings {
        let existing = match (self.keep, self.overwrite) {
            (true, _) => Existing::Keep,
            (_, true) => Existing::Overwrite,
            _ => Existing::Refuse,
        };
        Settings {
            existing,
            ..self.settings.clone()
        }
    }

    pub fn run(&self) -> anyhow::Result<()> {
        let settings = self.settings();
        let total = settings
            .transactions
            .saturating_mul(settings.threads.into());
        self.report
            .run(total, |progress| run_workload(&settings, progress))
    }
}
