// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing tables: one file per format.
//!
//! A long table comes in pieces, each written before the next is made.
// A recording may come from anybody: no number in it may make this panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod blkparse;
mod cell;
mod csv;
mod dataset;
mod foreign;
mod iolog;
mod json;
mod oracle;
mod output;
mod parquet;
mod perfetto;
mod requests;
mod table;

use crate::tables::Table;

pub use blkparse::write as blkparse;
pub use dataset::Dataset;
pub use foreign::Foreign;
pub use json::to_value;
pub use output::{Output, WriteError};
pub use table::to_text;

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people: aligned columns, large numbers in groups of three
    Table,
    /// A header line, then one line per row; an empty field is an unknown value
    Csv,
    /// The same for people who open it in a spreadsheet: a text that one would take for a formula has an apostrophe ahead
    CsvSafe,
    /// One array of objects, one line per object; null is an unknown value
    Json,
    /// Parquet, zstd-compressed
    Parquet,
}

/// What a writer of some format may say.
type Result = std::result::Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Writes tables in one format. All pieces have the same columns.
pub trait Exporter {
    /// Writes the next piece. The first one, even if it has no rows, tells the columns.
    ///
    /// # Errors
    /// The output cannot be written.
    fn write(&mut self, table: Table) -> Result;

    /// Writes what comes after the last piece.
    ///
    /// # Errors
    /// The output cannot be written.
    fn finish(self: Box<Self>) -> Result;
}

impl Format {
    fn exporter<'w>(self, out: &'w mut Output) -> Box<dyn Exporter + 'w> {
        match self {
            Format::Table => {
                let width = out.width();
                Box::new(table::Text::new(out, width))
            }
            Format::Csv => Box::new(csv::Csv::new(out, csv::Texts::Exact)),
            Format::CsvSafe => Box::new(csv::Csv::new(out, csv::Texts::NoFormula)),
            Format::Json => Box::new(json::Json::new(out)),
            Format::Parquet => Box::new(parquet::Parquet::new(out)),
        }
    }

    /// Writes a table that comes in pieces, of which there is at least one.
    ///
    /// # Errors
    /// The output cannot be written, or a piece cannot be made.
    pub fn write_all<E>(
        self,
        out: &mut Output,
        pieces: impl IntoIterator<Item = std::result::Result<Table, E>>,
    ) -> std::result::Result<(), WriteError>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let mut exporter = self.exporter(out);
        let result = (|| {
            for piece in pieces {
                let piece = piece?;
                exporter.write(match self {
                    Format::Table => piece,
                    _ => piece.without_total(),
                })?;
            }
            exporter.finish()
        })();
        out.end(result)
    }
}
