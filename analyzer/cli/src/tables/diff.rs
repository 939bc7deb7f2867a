// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace diff`: compares traces.

use std::path::{Path, PathBuf};

use mostrace_tables::export::{Output, sections_to_text, to_value};
use mostrace_tables::facts::catalogue;
use mostrace_tables::tables::about;
use mostrace_tables::tables::diff::{Diff as Differences, Side, letter};
use mostrace_trace::text::escape;
use serde_json::{Map, Value, json};

use crate::budget::OneRun;
use crate::names;
use crate::paint;

/// Show what changed from one recording to others: bytes, writes and flushes, by layer, class, role and cause
///
/// The first line says it in one sentence; what each recording shows by itself follows. With more than two
/// recordings, there is a line for each that is compared with the first, and the tables have a column for each.
/// If the number of committed transactions is known for all recordings (from the workload, or from SQLite's
/// calls), figures are per transaction.
///
/// Examples:
///   mostrace diff delete.most wal.most
///   mostrace diff before.most.tar.zst after.most.tar.zst --json
///   mostrace diff delete.most truncate.most persist.most wal.most
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Diff {
    /// The recording that the others are compared with
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The others: bundles, globs, or names of recordings in segments, each of which is one
    #[arg(value_name = "B", required = true)]
    others: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// The file to write to; - is the standard output
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

/// A trace, with what makes it incomplete.
struct Compared {
    path: PathBuf,
    side: Side,
    warnings: Vec<String>,
    /// That nothing was lost, and how that is known; None if that is not so.
    whole: Option<String>,
}

impl Diff {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let mut out = Output::create(self.output.as_deref())?;
        let paths = names::expand(&[vec![self.a], self.others].concat());
        let mut sides: Vec<Compared> = paths
            .iter()
            .map(|path| read(path))
            .collect::<Result<_, _>>()?;
        name_apart(&mut sides);
        let of_all: Vec<&Side> = sides.iter().map(|read| &read.side).collect();
        let diff = Differences::new(&of_all)?;
        match self.json {
            true => out.json(&json(&sides, &diff))?,
            false => {
                let text = text(&sides, &diff, out.width());
                paint::put(&mut out, &text)?;
            }
        }
        Ok(())
    }
}

/// Names recordings of equal names by their paths.
fn name_apart(sides: &mut [Compared]) {
    let names: Vec<String> = sides.iter().map(|read| read.side.name.clone()).collect();
    for (read, name) in sides.iter_mut().zip(&names) {
        if names.iter().filter(|other| *other == name).count() > 1 {
            read.side.name = escape(read.path.as_os_str().as_encoded_bytes());
        }
    }
}

fn json(sides: &[Compared], diff: &Differences) -> Value {
    let mut object = Map::new();
    object.insert("schema".into(), json!(catalogue::SCHEMA));
    object.insert("sentence".into(), json!(diff.sentence));
    for (nth, read) in sides.iter().enumerate() {
        let side = json!({
            "trace": read.path.display().to_string(),
            "name": read.side.name,
            "warnings": read.warnings,
            "finding": read.side.finding,
            "transactions": read.side.transactions.divisor(),
            "transactions_sure": read.side.transactions.sure,
            "not_counted": read.side.counted.value(),
        });
        object.insert(letter(nth), side);
    }
    for section in &diff.sections {
        object.insert(section.name.into(), to_value(&section.table));
    }
    Value::Object(object)
}

fn read(path: &Path) -> anyhow::Result<Compared> {
    let read = OneRun::path(path)?;
    let charged = read.charged();
    let reading = &read.reading;
    let name = about::name(path, charged.manifest);
    Ok(Compared {
        path: path.to_owned(),
        whole: about::whole(&reading.recordings, &reading.warnings),
        side: Side::new(name, &charged, &reading.warnings),
        warnings: reading.warnings.clone(),
    })
}

fn text(sides: &[Compared], diff: &Differences, width: Option<usize>) -> String {
    let mut text = String::new();
    for read in sides {
        for warning in &read.warnings {
            text += &format!("{}: {warning}\n", read.side.name);
        }
    }
    text += &format!("{}\n", diff.sentence);
    text.extend(diff.notes.iter().map(|note| note.clone() + "\n"));
    for (nth, read) in sides.iter().enumerate() {
        text += &format!("\n{}: {}\n", letter(nth), read.side.name);
        let lines = read.side.finding.lines(read.whole.as_deref());
        text.extend(lines.into_iter().map(|line| line + "\n"));
    }
    text + &sections_to_text(&diff.sections, width)
}
