// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace events`: one row per completed request part.

use clap::builder::PossibleValuesParser;
use mostrace::export::Format;
use mostrace::tables::events;

use super::out::OutArgs;
use super::source::SourceArgs;

/// Rows that are in memory at a time as a table.
const PIECE: usize = 1 << 16;

/// One row per completed request part: when, where, who, which file, what kind of block
///
/// A completed request is cut where the process, the kind of block, the file or who dirtied the
/// pages changes, or where the bytes do not follow one another in the file; rows of one request
/// share `completion`, and their bytes sum to its bytes. The end of a flush sequence, a cache flush
/// of the device and a discard are rows of their own, told apart by `op`.
///
/// `pid` and `comm` are who submitted the bio. `dirty_pid` and `dirty_comm` are who made its pages
/// dirty, and `dirty2q_ns` is how long before Q the row's first page became so, where that was
/// seen.
///
/// In names, bytes that are not UTF-8 or that could steer a terminal stand as \xNN, and a
/// backslash as \\.
///
/// Examples:
///   mostrace events run.most
///   mostrace events run.most --format csv | head
///   mostrace events run.most -o run.parquet
///   mostrace events run.most --columns time_ns,op,sector,bytes,home_path --json
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Events {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    out: OutArgs,
    /// Which columns, in which order; by default all, or the most telling ones in a table
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', hide_possible_values = true,
          value_parser = PossibleValuesParser::new(events::columns()))]
    columns: Vec<String>,
}

impl Events {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let mut out = self.out.create()?;
        let format = self.out.format();
        let source = self.source.read()?;
        let all: Vec<&str> = match (self.columns.is_empty(), format) {
            (false, _) => self.columns.iter().map(String::as_str).collect(),
            (true, Format::Table) => events::SHORT.to_vec(),
            (true, _) => events::columns().collect(),
        };
        let events = events::Events::new(&source.attributed, all);
        // At least one piece, so that an empty trace has its header.
        let starts = (0..events.len().max(1)).step_by(PIECE);
        let pieces = starts.map(|start| events.table(start..start + PIECE));
        Ok(format.write_all(&mut out, pieces)?)
    }
}
