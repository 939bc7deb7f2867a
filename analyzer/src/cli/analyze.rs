// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace analyze`: the tables.

use mostrace::export::{Format, to_text, to_value};
use mostrace::tables::SCHEMA;
use mostrace::tables::by::By;
use mostrace::tables::summary::{Summary, Trace};
use mostrace::tables::totals::Groups;
use mostrace_bundle::Bundle;
use serde_json::{Map, Value, json};

use super::UsageError;
use super::about;
use super::out::OutArgs;
use super::source::{Source, SourceArgs};

/// The most columns to sum by at a time.
const MOST_BY: usize = 4;

/// Sum up what reached the storage: by class, kind, role, process, file …
///
/// Without --by, all that there is to say, as text or as one JSON object. With it, one table:
///
///   X, requests, bytes, writes, write_bytes, reads, read_bytes, flushes, discards, …
///
/// bytes = write_bytes + read_bytes of completed requests; discards and write-zeroes are counted
/// apart. `requests` are those that have a part in the group: one that spans several groups counts
/// in each of them, and once in the total. `flushes` are the requests that asked for a cache flush,
/// `device_flushes` the flushes that the device executed. `process` is who submitted, `dirtier` who
/// made the pages dirty.
///
/// Examples:
///   mostrace analyze run.most
///   mostrace analyze run.most --by class
///   mostrace analyze run.most --by process,class --top 10
///   mostrace analyze run.most --by dirtier,file
///   mostrace analyze run.most --by file --format csv -o files.csv
///   mostrace analyze sda --image /dev/sda1 --start-sector 2048     (sda.blktrace.0 …)
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Analyze {
    #[command(flatten)]
    source: SourceArgs,
    /// Sum by these columns
    #[arg(long, value_enum, value_name = "COLUMN", value_delimiter = ',')]
    by: Vec<By>,
    /// Show the N groups with the most bytes, and the rest as one
    #[arg(long, value_name = "N", requires = "by")]
    top: Option<usize>,
    #[command(flatten)]
    out: OutArgs,
}

impl Analyze {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let format = self.out.format();
        if self.by.is_empty() && matches!(format, Format::Csv | Format::Parquet) {
            let what = "csv and parquet hold one table: choose it with --by";
            return Err(UsageError(what.into()).into());
        }
        if self.by.len() > MOST_BY {
            return Err(UsageError(format!("--by takes at most {MOST_BY} columns")).into());
        }
        let mut out = self.out.create()?;
        let source = self.source.read()?;
        if !self.by.is_empty() {
            let groups = Groups::new(&source.attributed, &self.by, self.top);
            return Ok(format.write_all(&mut out, [groups.table()])?);
        }
        let manifest = source.bundle.as_ref().map(Bundle::manifest);
        let Source {
            notices, mapped, ..
        } = &source;
        let trace = Trace {
            manifest,
            notices: notices.clone(),
            mapped: *mapped,
        };
        let summary = Summary::new(&source.attributed, trace);
        let text = match format {
            Format::Json => format!("{:#}\n", self.json(&summary, &source)),
            _ => self.text(&summary, &source),
        };
        Ok(out.text(&text)?)
    }

    fn text(&self, summary: &Summary, source: &Source) -> String {
        let mut text = String::new();
        let mut line = |line: &str| {
            text.push_str(line);
            text.push('\n');
        };
        for warning in &summary.warnings {
            line(warning);
        }
        let manifest = source.bundle.as_ref().map(Bundle::manifest);
        for (name, value) in about::lines(self.source.path(), manifest, summary) {
            line(&format!("{name:<11} {value}"));
        }
        for notice in &summary.notices {
            line(&format!("{:<11} {notice}", "note"));
        }
        for section in summary.sections.iter().filter(|s| !s.table.is_empty()) {
            line(&format!("\n{}", section.title));
            if let Some(note) = section.note {
                line(&format!("({note})"));
            }
            line(to_text(&section.table).trim_end_matches('\n'));
        }
        text
    }

    fn json(&self, summary: &Summary, source: &Source) -> Value {
        let mut object = Map::new();
        let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
        put("schema", json!(SCHEMA));
        put("trace", json!(self.source.path().display().to_string()));
        put("warnings", json!(summary.warnings));
        put("notices", json!(summary.notices));
        put("duration_ns", json!(summary.duration_ns));
        put(
            "manifest",
            json!(source.bundle.as_ref().map(Bundle::manifest)),
        );
        put(
            "total",
            to_value(&summary.total.table())
                .get(0)
                .cloned()
                .unwrap_or_default(),
        );
        for section in &summary.sections {
            put(section.name, to_value(&section.table));
        }
        Value::Object(object)
    }
}
