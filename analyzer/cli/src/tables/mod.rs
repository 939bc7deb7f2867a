// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verbs that need tables.

mod analyze;
mod brief;
mod diff;
mod events;
mod export;
mod hide;
mod hint;
mod ledger;
mod map;
mod out;
mod query;
#[cfg(target_os = "linux")]
mod replay;
mod report;
mod source;
mod tree;
mod wrote;

use std::io::Write as _;
use std::process::ExitCode;

pub use hint::hint;
#[cfg(target_os = "linux")]
pub use tree::charged as tree;

/// Returns an error for what needs tables, in a program without them.
///
/// # Errors
/// Never fails here.
#[cfg(target_os = "linux")]
pub fn check(_: &str) -> anyhow::Result<()> {
    Ok(())
}

/// A verb and its arguments.
#[derive(clap::Subcommand)]
pub enum Verb {
    #[cfg(target_os = "linux")]
    Replay(Box<replay::Replay>),
    Analyze(analyze::Analyze),
    Report(report::Report),
    Diff(diff::Diff),
    Events(events::Events),
    Export(export::Export),
    Query(query::Query),
    Ledger(ledger::Ledger),
    Map(map::Map),
    /// Describe the tables and their columns, as Markdown
    Schema,
}

impl Verb {
    /// Runs the verb.
    ///
    /// # Errors
    /// Returns what the verb could not do.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            #[cfg(target_os = "linux")]
            Verb::Replay(args) => return Ok(ExitCode::from(args.run()?)),
            Verb::Analyze(args) => wrote::telling(args.out.file(), || args.run())?,
            Verb::Report(args) => args.run()?,
            Verb::Diff(args) => wrote::telling(args.output.clone(), || args.run())?,
            Verb::Export(args) => args.run()?,
            Verb::Events(args) => wrote::telling(args.out.file(), || args.run())?,
            Verb::Query(args) => wrote::telling(args.out.file(), || args.run())?,
            Verb::Ledger(args) => return Ok(ExitCode::from(args.run()?)),
            Verb::Map(args) => wrote::telling(args.out.file(), || args.run())?,
            Verb::Schema => {
                std::io::stdout().write_all(mostrace_tables::tables::markdown().as_bytes())?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
