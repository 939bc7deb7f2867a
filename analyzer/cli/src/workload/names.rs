// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace workload names`.

use mostrace_workload::{NameSettings, run_names};

use super::report::Report;

/// Make, rename or remove names, each durably
///
/// The folder is synced after each. What is renamed or removed must be made before, with --prepare.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Names {
    #[command(flatten)]
    settings: NameSettings,
    #[command(flatten)]
    report: Report,
}

impl Names {
    pub fn run(&self) -> anyhow::Result<()> {
        let settings = &self.settings;
        self.report
            .run(settings.count, |progress| run_names(settings, progress))
    }
}
