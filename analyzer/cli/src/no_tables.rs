// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verbs of a program without tables: `analyze`, as far as it goes without them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use mostrace_trace::answer::{Answer, Summing};
use mostrace_trace::output::Output;
use mostrace_trace::recording::Recording;
use serde_json::{Map, Value, json};

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

/// A verb and its arguments.
#[derive(clap::Subcommand)]
pub enum Verb {
    Analyze(Analyze),
    #[command(hide = true)]
    Measure(Words),
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
    Check(Words),
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
        let answer = Answer::of(&sums, manifest, &reading.databases()?);
        let shown = |one: &Recording| one.path().display().to_string();
        let mut object = Map::new();
        let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
        match &reading.recordings[..] {
            [one] => put("trace", json!(shown(one))),
            several => put("traces", several.iter().map(shown).collect()),
        };
        put("warnings", json!(reading.warnings));
        put("finding", json!(answer));
        put("notices", json!(reading.all_notices()));
        put("duration_ns", json!(reading.origins.duration_ns()));
        put(
            "manifest",
            json!(manifest.filter(|_| reading.recordings.len() == 1)),
        );
        let total = sums.layers.total;
        let total = total
            .fields()
            .map(|(name, value)| (name.to_owned(), json!(value)));
        put("total", total.collect::<Map<_, _>>().into());
        Ok(out.json(&Value::Object(object))?)
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
