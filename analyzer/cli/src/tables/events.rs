// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace events`: one row per completed request part.

use clap::builder::PossibleValuesParser;
use mostrace_tables::export::Format;
use mostrace_tables::facts::{Column, Filter, catalogue};
use mostrace_tables::tables::Table;

use super::out::{OutArgs, twice};
use super::source::{SourceArgs, WhereArgs};
use crate::usage;

/// One row per completed request part: when, where, who, which file, what kind of block
///
/// A completed request is divided where the process, the kind of block, the file or the task that
/// dirtied the pages changes, or where the bytes are not consecutive in the file; rows of one request
/// share `completion`, and their bytes sum to its bytes. The end of a flush sequence, a cache flush
/// of the device and a discard are rows of their own, which `op` distinguishes.
///
/// `pid` and `comm` are those of the thread that submitted the bio. `dirty_pid` and `dirty_comm` are those
/// of the thread that dirtied its pages, and `dirty2q_ns` is the time from then to Q for the row's first
/// page, if that was seen. `mostrace schema` describes every column.
///
/// If there are several recordings, their rows follow one another, and `bundle` is the first column.
///
/// In names, bytes that are not UTF-8 or that could control a terminal are printed as \xNN, and a
/// backslash as \\.
///
/// Examples:
///   mostrace events run.most
///   mostrace events run.most --format csv | head
///   mostrace events run.most -o run.parquet
///   mostrace events run.most --where "role = 'wal' AND NOT sequential"
///   mostrace events 'day-*.most' -o all.parquet
///   mostrace events run.most --columns time_utc,op,sector,bytes,home_path --json
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Events {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    rows: WhereArgs,
    #[command(flatten)]
    pub(super) out: OutArgs,
    /// The columns, in this order; by default all, or the most important ones in a table
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', hide_possible_values = true,
          value_parser = PossibleValuesParser::new(catalogue::ALL.iter().map(|c| c.name)))]
    columns: Vec<String>,
}

impl Events {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        if let Some(name) = twice(&self.columns) {
            usage!("--columns names {name} twice");
        }
        let filter = self.rows.filter()?;
        let mut out = self.out.create()?;
        let format = self.out.format();
        let names: Vec<&str> = match (self.columns.is_empty(), format) {
            (false, _) => self.columns.iter().map(String::as_str).collect(),
            (true, Format::Table) => catalogue::SHORT.to_vec(),
            (true, _) => catalogue::events().collect(),
        };
        let columns: Vec<&'static Column> = names.into_iter().filter_map(Column::find).collect();
        let asked = filter.as_ref().map(Filter::columns).unwrap_or_default();
        let analysis = self.source.read_for(columns.iter().chain(asked))?;
        let mut columns = columns;
        // With several recordings, each row must show which one it comes from.
        let bundle = Column::find("bundle").filter(|_| analysis.is_of_several());
        if let Some(bundle) = bundle.filter(|_| self.columns.is_empty()) {
            columns.insert(0, bundle);
        }
        let pieces = analysis.facts.frames(&columns, filter.as_ref());
        Ok(format.write_all(&mut out, pieces.map(|piece| piece.map(Table::from)))?)
    }
}
