// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes tables; there is a file for each format.
//!
//! A long table comes in pieces, each of which is written before the next is computed.
// A recording may come from anybody: no number in it may make this panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod blkparse;
mod blktrace;
mod cell;
mod csv;
mod dataset;
mod error;
mod foreign;
mod identity;
mod iolog;
mod json;
mod left_out;
mod operations;
mod oracle;
mod parquet;
mod perfetto;
mod requests;
mod table;

use std::convert::Infallible;

use crate::tables::Table;

pub use blkparse::write as blkparse;
pub use blktrace::write as blktrace;
pub use dataset::{Dataset, day_of};
pub use error::Error as ForeignError;
pub use foreign::Foreign;
pub use identity::identity;
pub use json::to_value;
pub use mostrace_trace::output::{Output, WriteError};
pub use operations::{Error as OperationsError, write as operations};
pub use table::{sections_to_text, to_text};

/// The format in which a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A text for people: aligned columns, large numbers in groups of three
    Table,
    /// A header line, then one line per row; an empty field is an unknown value
    Csv,
    /// CSV for spreadsheets: a text that looks like a formula is preceded by an apostrophe
    CsvSafe,
    /// One array of objects, one line per object; null is an unknown value
    Json,
    /// Parquet, zstd-compressed
    Parquet,
}

/// The result of writing in any format.
type Result = std::result::Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Writes a table in one format. All pieces of it have the same columns.
pub trait Exporter {
    /// Writes the next piece. The first piece determines the columns, even if it has no rows.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    fn write(&mut self, table: Table) -> Result;

    /// Writes what follows the last piece, which in most formats is nothing.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    fn finish(self: Box<Self>) -> Result {
        Ok(())
    }
}

impl Format {
    /// Writes a table that is in one piece.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    pub fn write_one(self, out: &mut Output, table: Table) -> std::result::Result<(), WriteError> {
        self.write_all(out, [Ok::<_, Infallible>(table)])
    }

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

    /// Writes a table that comes in at least one piece.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written or a piece cannot be computed.
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
