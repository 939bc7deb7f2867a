// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace workload names`.

use std::path::PathBuf;

use clap::value_parser;
use mostrace_workload::{NameOp, NameSettings, run_names};

use super::choice;
use super::report::Report;

/// Make, rename or remove names, each durably
///
/// The folder is synced after each. What is renamed or removed must be made before, with --prepare.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Names {
    /// The folder
    #[arg(default_value = ".")]
    path: PathBuf,
    /// The operation on each name
    #[arg(long, default_value = "create", value_parser = choice::<NameOp>())]
    op: NameOp,
    /// Number of names
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = value_parser!(u64).range(1..=1 << 32))]
    count: u64,
    /// Only make the files that the same command without this option renames or removes
    #[arg(long)]
    prepare: bool,
    #[command(flatten)]
    report: Report,
}

impl Names {
    pub fn run(&self) -> anyhow::Result<()> {
        let settings = NameSettings {
            path: self.path.clone(),
            op: self.op,
            count: self.count,
            prepare: self.prepare,
        };
        self.report
            .run(self.count, |progress| run_names(&settings, progress))
    }
}
