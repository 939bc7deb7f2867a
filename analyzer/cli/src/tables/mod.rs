// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verbs that need tables.

mod analyze;
mod brief;
mod budget;
mod diff;
mod events;
mod export;
#[cfg(target_os = "linux")]
mod ground;
#[cfg(target_os = "linux")]
mod guest;
mod hide;
mod hint;
mod keep;
mod ledger;
mod map;
#[cfg(target_os = "linux")]
mod measure;
mod out;
mod query;
#[cfg(target_os = "linux")]
mod replay;
mod report;
mod source;
mod tree;
mod tree_json;
mod wrote;

use std::io::Write as _;
use std::process::ExitCode;

pub use hint::hint;

/// A verb and its arguments.
#[derive(clap::Subcommand)]
pub enum Verb {
    #[cfg(target_os = "linux")]
    Measure(measure::Measure),
    #[cfg(target_os = "linux")]
    Replay(replay::Replay),
    Analyze(analyze::Analyze),
    Report(report::Report),
    Diff(diff::Diff),
    Events(events::Events),
    Export(export::Export),
    Check(budget::Check),
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
            Verb::Measure(args) => return Ok(ExitCode::from(measure::run(&args)?)),
            #[cfg(target_os = "linux")]
            Verb::Replay(args) => return Ok(ExitCode::from(args.run()?)),
            Verb::Check(args) => return Ok(ExitCode::from(args.run()?)),
            Verb::Analyze(args) => wrote::telling(args.file(), || args.run())?,
            Verb::Report(args) => args.run()?,
            Verb::Diff(args) => wrote::telling(args.file(), || args.run())?,
            Verb::Export(args) => args.run()?,
            Verb::Events(args) => wrote::telling(args.file(), || args.run())?,
            Verb::Query(args) => wrote::telling(args.file(), || args.run())?,
            Verb::Ledger(args) => return Ok(ExitCode::from(args.run()?)),
            Verb::Map(args) => wrote::telling(args.file(), || args.run())?,
            Verb::Schema => {
                std::io::stdout().write_all(mostrace_tables::tables::markdown().as_bytes())?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Quotes words for a shell and joins them with spaces.
#[cfg(target_os = "linux")]
fn line<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    let quoted = words
        .into_iter()
        .map(|word| crate::shell::quoted(word.as_ref()));
    quoted.collect::<Vec<_>>().join(" ")
}
