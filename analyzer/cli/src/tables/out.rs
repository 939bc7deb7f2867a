// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments that determine the format and the destination of the output.

use std::path::{Path, PathBuf};

use mostrace_tables::export::{Format, Output};
use mostrace_tables::nearest::nearest;
use mostrace_tables::tables::Table;

use crate::{UsageError, usage};

/// File extensions of formats and of text.
const ENDINGS: [&str; 5] = ["json", "csv", "parquet", "txt", "text"];

/// `--format`, `--json`, `-o`.
#[derive(clap::Args)]
pub struct OutArgs {
    /// The format; by default the one that FILE's extension indicates, or else a table
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// The file to write to; - is the standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl OutArgs {
    /// Returns the file to write to.
    pub fn file(&self) -> Option<PathBuf> {
        self.output.clone()
    }

    /// Returns the format, however it was chosen.
    pub fn format(&self) -> Format {
        let ending = self
            .output
            .as_ref()
            .and_then(|path| path.extension()?.to_str());
        match (self.format, self.json, ending) {
            (Some(format), ..) => format,
            (None, true, _) | (None, _, Some("json")) => Format::Json,
            (None, _, Some("csv")) => Format::Csv,
            (None, _, Some("parquet")) => Format::Parquet,
            _ => Format::Table,
        }
    }

    /// Checks the file's extension: a user who names a file for another program expects that the program can read it.
    fn check_ending(&self) -> anyhow::Result<()> {
        let ending = self.output.as_ref().and_then(|path| path.extension());
        let is_known = ending.is_none_or(|ending| ENDINGS.iter().any(|known| ending == *known));
        if is_known || self.json || self.format.is_some() {
            return Ok(());
        }
        let path = self.output.as_deref().unwrap_or(Path::new("-"));
        let what = format!(
            "{}: the extension does not determine a format: choose one with --format (table, csv, csv-safe, json, parquet)",
            path.display()
        );
        Err(UsageError(what).into())
    }

    /// Creates the output; call it before the long analysis, so that a wrong path is noticed at once.
    pub fn create(&self) -> anyhow::Result<Output> {
        self.check_ending()?;
        let output = Output::create(self.output.as_deref())?;
        if self.format() == Format::Parquet && output.is_terminal() {
            usage!("parquet is not for terminals: write it to a file (-o FILE) or a pipe");
        }
        Ok(output)
    }
}

/// Returns the first of several names that occurs twice.
pub fn twice(names: &[String]) -> Option<&String> {
    let mut each = names.iter().enumerate();
    each.find_map(|(at, name)| names[..at].contains(name).then_some(name))
}

/// Returns the table with only these columns, in this order; with all columns if none is given.
///
/// # Errors
/// Returns an error if there is no column of such a name.
pub fn chosen(columns: &[String], table: Table) -> anyhow::Result<Table> {
    if columns.is_empty() {
        return Ok(table);
    }
    if let Some(name) = twice(columns) {
        usage!("--columns names {name} twice");
    }
    let has = |name: &&String| table.frame.column(name).is_err();
    if let Some(name) = columns.iter().find(has) {
        let all = table.frame.columns().iter();
        let names: Vec<&str> = all.map(|column| column.name().as_str()).collect();
        let near = nearest(name, names.iter().copied());
        let names = names.join(", ");
        usage!("no column {name} in this table{near}; it has {names}");
    }
    Ok(table.select(columns)?)
}
