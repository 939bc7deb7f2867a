// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace analyze`: the tables.

use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser};
use mostrace_bundle::units;
use mostrace_tables::analysis::Analysis;
use mostrace_tables::export::{Format, Output, sections_to_text, to_text, to_value};
use mostrace_tables::facts::{Column, Filter, catalogue};
use mostrace_tables::tables::groups::table_of;
use mostrace_tables::tables::summary::Summary;
use mostrace_tables::tables::{self, Grouping, Table, about, percentiles, summed, waits};
use mostrace_trace::charged::Charging;
use mostrace_trace::sums::Totals;
use mostrace_trace::transactions::Transactions;
use serde_json::{Map, Value, json};

use super::out::{self, OutArgs, twice};
use super::source::{SourceArgs, WhereArgs};
use super::{brief, tree};
use crate::json::Shown;
use crate::paint;
use crate::shell;
use crate::usage;

/// The most columns to group by at a time.
const MOST_BY: usize = 4;

/// Sum up what reached the storage: by class, kind, role, process, file …
///
/// Without --by, prints what the trace shows in a headline and the largest layers, whether it is complete,
/// and the largest programs and files; with --full, or as JSON, everything. With --by, prints one table:
///
///   X, requests, bytes, writes, write_bytes, reads, read_bytes, flushes, discards, …
///
/// bytes = write_bytes + read_bytes of completed requests; discards and write-zeroes are counted
/// separately. `requests` are those with a part in the group: a request that spans several groups counts
/// in each of them, and once in the total. `flushes` are the requests that asked for a cache flush,
/// `device_flushes` the flushes that the device executed. `process` is the submitter, `dirtier` the
/// process that dirtied the pages; `cause_process`, `cause_op`, `cause_file` and `cause_known` say who
/// caused it, by which operation on which file, and how certain that is. If bytes have several causers,
/// each group gets its share of them, and a request counts where its largest share is.
///
/// Examples:
///   mostrace analyze run.most
///   mostrace analyze run.most --full
///   mostrace analyze run.most --by class
///   mostrace analyze run.most --by process,class --top 10
///   mostrace analyze run.most --by dirtier,file
///   mostrace analyze run.most --by cause_process,cause_op
///   mostrace analyze 'day-*.most' --every 1h --by process
///   mostrace analyze run.most --tree
///   mostrace analyze monday.most tuesday.most --by bundle,process
///   mostrace analyze 'day-*.most' --by file                        (equal paths are added up)
///   mostrace analyze run.most --by file --where "op = 'write'" --columns file,writes,write_bytes
///   mostrace analyze run.most --by class --percentiles
///   mostrace analyze run.most --waits                              (what each fsync waited for)
///   mostrace analyze run.most --waits --by process,file
///   mostrace analyze run.most --by file --format csv -o files.csv
///   mostrace analyze sda --image /dev/sda1 --start-sector 2048     (sda.blktrace.0 …)
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Analyze {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    rows: WhereArgs,
    /// All tables
    #[arg(long, conflicts_with_all = ["by", "percentiles", "tree"])]
    full: bool,
    /// Group by these columns
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', hide_possible_values = true,
          value_parser = PossibleValuesParser::new(groupable()))]
    by: Vec<String>,
    /// Show the N groups with the most bytes (for percentiles: requests), and the others as one
    #[arg(long, value_name = "N", requires = "by")]
    top: Option<usize>,
    /// Sum up each interval of this length by itself, such as 10s, 1m, 1h; --by divides each further
    #[arg(long, value_name = "TIME", value_parser = interval, conflicts_with_all = ["top", "percentiles", "tree"])]
    every: Option<Duration>,
    /// Show p50, p90, p99 and max of times and sizes instead of sums
    #[arg(long, requires = "by")]
    percentiles: bool,
    /// Show what was stored and what reached the device, by process and database and by the layers between
    #[arg(long, conflicts_with_all = ["by", "percentiles"])]
    tree: bool,
    /// Show what calls for durability (fsync …) waited for: data, metadata, the commit's beginning, the commit, flushes and
    /// the rest, which sum to their time; --by process, comm, file or role divides them further
    #[arg(long, conflicts_with_all = ["full", "percentiles", "tree", "every", "condition"])]
    waits: bool,
    /// The columns of the table, in this order
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', requires = "by")]
    columns: Vec<String>,
    #[command(flatten)]
    pub(super) out: OutArgs,
}

fn interval(text: &str) -> Result<Duration, String> {
    match units::time(text)? {
        time if time < Duration::from_millis(1) => Err("an interval is at least 1ms long".into()),
        time => Ok(time),
    }
}

/// Returns the columns that rows can be grouped by.
fn groupable() -> impl Iterator<Item = PossibleValue> {
    let columns = catalogue::ALL
        .iter()
        .filter(|c| c.ty != catalogue::Type::Time);
    columns.map(|column| PossibleValue::new(column.name).help(column.doc))
}

/// Returns true for the name of a column of sums.
fn is_sum(name: &str) -> bool {
    Totals::default().fields().any(|(field, _)| field == name)
}

impl Analyze {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let format = self.out.format();
        let is_one_table = self.every.is_some() || !self.by.is_empty() || self.waits;
        if !is_one_table && matches!(format, Format::Csv | Format::CsvSafe | Format::Parquet) {
            usage!("csv and parquet hold one table: choose it with --by");
        }
        if self.by.len() > MOST_BY {
            usage!("--by takes at most {MOST_BY} columns");
        }
        if let Some(name) = twice(&self.by) {
            usage!("--by names {name} twice");
        }
        // A column of the sums has the same name.
        if let Some(name) = self
            .by
            .iter()
            .find(|name| is_sum(name) && !self.percentiles)
        {
            usage!("--by {name}: {name} are summed; --by size groups by the length of requests");
        }
        if self.waits {
            return self.waits();
        }
        let filter = self.rows.filter()?;
        let filter = filter.as_ref();
        let names: Vec<&str> = self.by.iter().map(String::as_str).collect();
        let by = Column::all_of(&names);
        let mut out = self.out.create()?;
        if is_one_table {
            let asked = filter.map(Filter::columns).unwrap_or_default();
            let facts = self.source.read_for(by.iter().chain(asked))?.facts;
            let table = match self.percentiles {
                true => percentiles::table(&facts, &by, self.top, filter)?,
                false => {
                    let (top, every) = (self.top, self.every);
                    table_of(&summed(&facts, Grouping { by, top, every }, filter)?)?
                }
            };
            return self.put(table, &mut out);
        }
        if self.tree {
            return self.tree(filter, format, &mut out);
        }
        if !self.full && format != Format::Json {
            let brief = match filter {
                Some(filter) => brief::of(&self.source.analyze(false, true)?, filter)?,
                None => self.source.brief()?,
            };
            let text = brief.text(out.width(), &self.next());
            return Ok(paint::put(&mut out, &text)?);
        }
        let analysis = self.source.analyze(true, true)?;
        let (facts, manifest) = (&analysis.facts, analysis.manifest());
        let summary = Summary::new(facts, filter, manifest, &analysis.databases)?;
        match format {
            Format::Json => out.json(&self.json(&summary, &analysis))?,
            _ => {
                let text = self.text(&summary, &analysis, out.width());
                paint::put(&mut out, &text)?;
            }
        }
        Ok(())
    }

    /// Returns the commands to suggest next, with the options of this one. A page takes none of them.
    fn next(&self) -> String {
        let paths = self.source.paths().iter();
        let paths = paths.map(|path| shell::plain(&path.display().to_string()));
        let paths = paths.collect::<Vec<_>>().join(" ");
        let options = [self.source.options(), self.rows.option()];
        let options = options.iter().filter(|option| !option.is_empty());
        let given: String = options.map(|option| format!(" {option}")).collect();
        let report = match given.is_empty() {
            true => format!("; mostrace report {paths} -o report.html"),
            false => String::new(),
        };
        format!("mostrace analyze {paths}{given} --full{report}")
    }

    /// Prints what calls for durability waited for.
    fn waits(&self) -> anyhow::Result<()> {
        let names: Vec<&str> = self.by.iter().map(String::as_str).collect();
        if let Some(name) = names.iter().find(|name| !waits::BY.contains(name)) {
            let known = waits::BY.join(", ");
            usage!("--waits --by {name}: it goes by {known}");
        }
        let mut out = self.out.create()?;
        let analysis = self.source.analyze(false, false)?;
        let mut sums = waits::Sums::new(names);
        let mut has_calls = false;
        for (nth, recording) in analysis.recordings().iter().enumerate() {
            if let Some(mut calls) = recording.calls()? {
                has_calls = true;
                sums.add(&analysis.facts, nth, &mut calls, analysis.waits(nth)?)?;
            }
        }
        if !has_calls {
            log::warn!("no calls: record with causes, which tell them");
        }
        self.put(sums.table(self.top)?, &mut out)
    }

    /// Writes a table, or the columns of it that were asked for.
    fn put(&self, table: Table, out: &mut Output) -> anyhow::Result<()> {
        let table = out::chosen(&self.columns, table)?;
        let format = self.out.format();
        if format == Format::Table && self.columns.is_empty() {
            let width = out.width();
            return Ok(paint::put(out, &to_text(&table, width))?);
        }
        Ok(format.write_one(out, table)?)
    }

    /// Prints the tree as text or JSON.
    fn tree(
        &self,
        filter: Option<&Filter>,
        format: Format,
        out: &mut Output,
    ) -> anyhow::Result<()> {
        let (tree, manifest, databases) = match filter {
            None => {
                let mut charging = Charging::default();
                let reading = self.source.read(&mut charging)?;
                let manifest = reading.manifest.as_ref();
                let charged = charging.charged(&reading.origins, manifest, &reading.databases);
                (charged.tree(), reading.manifest, reading.databases)
            }
            Some(_) => {
                let analysis = self.source.analyze(false, true)?;
                let manifest = analysis.manifest();
                let filesystem = manifest.and_then(|m| m.filesystem.as_ref());
                let filesystem = filesystem.map_or("the filesystem", |f| f.kind.as_str());
                let tree = tables::tree::of(&analysis.facts, &[], filesystem, filter)?;
                (tree, manifest.cloned(), analysis.databases)
            }
        };
        let manifest = manifest.as_ref();
        if format == Format::Json {
            let payload = manifest.and_then(|m| m.payload.as_ref());
            let transactions = Transactions::new(manifest, &databases);
            return Ok(out.json(&tree.value(payload, &transactions))?);
        }
        let (most, width) = (tree::MOST_OWNERS, out.width());
        let text = tree::text(manifest, &databases, &tree, most, width)?;
        Ok(paint::put(out, &text)?)
    }

    fn text(&self, summary: &Summary, analysis: &Analysis, width: Option<usize>) -> String {
        let mut text = String::new();
        let mut line = |line: &str| {
            text.push_str(line);
            text.push('\n');
        };
        analysis.warnings.iter().for_each(|first| line(first));
        for first in summary.answer.iter().flat_map(|answer| answer.lines(None)) {
            line(&first);
        }
        let manifest = analysis.manifest();
        let about = match analysis.recordings() {
            [one] => about::lines(one.path(), manifest, summary.duration_ns, &summary.total),
            several => {
                let each = several.iter().map(|one| (one.path(), one.manifest()));
                about::lines_of_several(each, summary.duration_ns, &summary.total)
            }
        };
        for (name, value) in about {
            line(&format!("{name:<11} {value}"));
        }
        for notice in &analysis.all_notices() {
            line(&format!("{:<11} {notice}", "note"));
        }
        text + &sections_to_text(&summary.sections, width)
    }

    fn json(&self, summary: &Summary, analysis: &Analysis) -> Value {
        let mut object = Map::new();
        object.insert("schema".into(), json!(catalogue::SCHEMA));
        let shown = Shown {
            recordings: analysis.recordings(),
            manifest: analysis.manifest(),
            warnings: &analysis.warnings,
            finding: summary.answer.as_ref(),
            notices: &analysis.all_notices(),
            duration_ns: summary.duration_ns,
            total: &summary.total,
        };
        object.append(&mut shown.object());
        for section in &summary.sections {
            object.insert(section.name.into(), to_value(&section.table));
        }
        Value::Object(object)
    }
}
