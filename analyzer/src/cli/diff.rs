// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace diff`: what is different between two traces.

use std::path::{Path, PathBuf};

use mostrace::causes::Sharing;
use mostrace::export::{Output, to_text, to_value};
use mostrace::facts::catalogue;
use mostrace::tables::about;
use mostrace::tables::diff::{Diff as Differences, Side};
use mostrace_bundle::Bundle;
use serde_json::{Map, Value, json};

use super::budget;

/// Say what changed from one recording to another: bytes, writes and flushes, by layer, class, role and cause
///
/// The first line says it in one sentence. Where it is known of both how many transactions were committed (by the workload, or by
/// SQLite's calls), they are compared by the transaction.
///
/// Examples:
///   mostrace diff delete.most wal.most
///   mostrace diff before.most.tar.zst after.most.tar.zst --json
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Diff {
    /// The one that the other is held against
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The other one
    #[arg(value_name = "B")]
    b: PathBuf,
    /// One object of JSON
    #[arg(long)]
    json: bool,
    /// Where to write; - is the standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// A trace, with what makes it incomplete.
struct Read {
    side: Side,
    warnings: Vec<String>,
}

impl Diff {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let mut out = Output::create(self.output.as_deref())?;
        let (mut a, mut b) = (read(&self.a)?, read(&self.b)?);
        if a.side.name == b.side.name {
            for (read, path) in [(&mut a, &self.a), (&mut b, &self.b)] {
                read.side.name = mostrace::text::escape(path.as_os_str().as_encoded_bytes());
            }
        }
        let diff = Differences::new(&a.side, &b.side)?;
        match self.json {
            true => out.json(&self.json(&a, &b, &diff))?,
            false => out.text(&text(&a, &b, &diff, out.width()))?,
        }
        Ok(())
    }

    fn json(&self, a: &Read, b: &Read, diff: &Differences) -> Value {
        let side = |read: &Read, path: &Path| {
            json!({
                "trace": path.display().to_string(),
                "name": read.side.name,
                "warnings": read.warnings,
                "transactions": read.side.transactions.divisor(),
                "transactions_sure": read.side.transactions.sure,
            })
        };
        let mut object = Map::new();
        object.insert("schema".into(), json!(catalogue::SCHEMA));
        object.insert("sentence".into(), json!(diff.sentence));
        object.insert("a".into(), side(a, &self.a));
        object.insert("b".into(), side(b, &self.b));
        for section in &diff.sections {
            object.insert(section.name.into(), to_value(&section.table));
        }
        Value::Object(object)
    }
}

fn read(path: &Path) -> anyhow::Result<Read> {
    let analysis = budget::read(path, Some(Sharing::First))?;
    let manifest = analysis.bundle.as_ref().map(Bundle::manifest);
    let name = about::name(path, manifest);
    let databases = analysis.databases()?;
    Ok(Read {
        side: Side::new(
            name,
            &analysis.facts,
            manifest,
            &databases,
            &analysis.warnings,
        )?,
        warnings: analysis.warnings,
    })
}

fn text(a: &Read, b: &Read, diff: &Differences, width: Option<usize>) -> String {
    let mut text = String::new();
    for read in [a, b] {
        for warning in &read.warnings {
            text += &format!("{}: {warning}\n", read.side.name);
        }
    }
    text += &format!("{}\n", diff.sentence);
    text += &format!("\na: {}\nb: {}\n", a.side.name, b.side.name);
    for section in diff.sections.iter().filter(|s| s.table.says_something()) {
        text += &format!("\n{}\n{}", section.title, to_text(&section.table, width));
    }
    text
}
