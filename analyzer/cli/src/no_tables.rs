// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verbs of a program without tables: `analyze`, as far as it goes without them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use mostrace_trace::answer::{Answer, Summing};
#[cfg(target_os = "linux")]
use mostrace_trace::charged::Charged;
use mostrace_trace::output::Output;
use serde_json::Value;

use crate::json::Shown;
use crate::paint;
use crate::shell;
use crate::source::SourceArgs;
use crate::usage::usage;

/// What a verb or an option that needs tables is told.
const LACKING: &str =
    "needs tables, which this program was built without: `make install` builds all of it";

/// Returns a line for an option of `analyze` that may be one of the program with tables.
pub fn hint(error: &clap::Error) -> Option<String> {
    let verb = std::env::args_os()
        .skip(1)
        .find(|word| !word.as_encoded_bytes().starts_with(b"-"));
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(option)))
            if verb.is_some_and(|verb| verb == "analyze") && option.starts_with("--") =>
        {
            Some(format!("{option}: unknown, or {LACKING}"))
        }
        _ => None,
    }
}

/// Returns an error for what needs tables, in a program without them.
///
/// # Errors
/// Always fails here.
#[cfg(target_os = "linux")]
pub fn check(what: &str) -> anyhow::Result<()> {
    usage!("{what} {LACKING}");
}

/// Returns an error in place of the tree, which is a table.
///
/// # Errors
/// Always fails.
#[cfg(target_os = "linux")]
pub fn tree(_: &Charged<'_>, _: Option<usize>) -> anyhow::Result<String> {
    usage!("the tree {LACKING}");
}

/// A verb and its arguments.
#[derive(clap::Subcommand)]
pub enum Verb {
    Analyze(Analyze),
    #[command(hide = true)]
    Replay(Words),
    #[command(hide = true)]
    Report(Words),
    #[command(hide = true)]
    Diff(Words),
    #[command(hide = true)]
    Events(Words),
    #[command(hide = true)]
    Export(Words),
    #[command(hide = true)]
    Query(Words),
    #[command(hide = true)]
    Ledger(Words),
    #[command(hide = true)]
    Map(Words),
    #[command(hide = true)]
    Schema(Words),
}

/// Needs tables, which this program was built without
#[derive(clap::Args)]
pub struct Words {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Sum up what reached the storage: the headline, the largest layers, and the largest programs and files
///
/// All tables, columns to group by and other formats need the program with tables.
#[derive(clap::Args)]
pub struct Analyze {
    #[command(flatten)]
    source: SourceArgs,
    /// Print the finding and the sums as JSON
    #[arg(long)]
    json: bool,
    /// The file to write to; - is the standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Verb {
    /// Runs the verb.
    ///
    /// # Errors
    /// Returns what the verb could not do.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Verb::Analyze(args) => args.run()?,
            _ => {
                let verb = std::env::args().nth(1).unwrap_or_default();
                usage!("{verb} {LACKING}");
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Analyze {
    fn run(self) -> anyhow::Result<()> {
        let mut out = Output::create(self.output.as_deref())?;
        if !self.json {
            let brief = self.source.brief()?;
            let text = brief.text(out.width(), &self.next());
            return Ok(paint::put(&mut out, &text)?);
        }
        let mut summing = Summing::default();
        let reading = self.source.read(&mut summing)?;
        let sums = summing.finish(&reading.origins);
        let manifest = reading.manifest.as_ref();
        let shown = Shown {
            recordings: &reading.recordings,
            manifest,
            warnings: &reading.warnings,
            finding: Some(&Answer::of(&sums, manifest, &reading.databases)),
            notices: &reading.all_notices(),
            duration_ns: reading.origins.duration_ns(),
            total: &sums.layers.total,
        };
        Ok(out.json(&Value::Object(shown.object()))?)
    }

    /// Returns what to do for more.
    fn next(&self) -> String {
        let paths = self.source.paths().iter();
        let paths = paths.map(|path| shell::plain(&path.display().to_string()));
        let mut words: Vec<String> = paths.collect();
        words.extend(Some(self.source.options()).filter(|options| !options.is_empty()));
        let words = words.join(" ");
        format!("mostrace analyze {words} --full, by the program with tables (make install)")
    }
}
