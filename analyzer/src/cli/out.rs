// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments that say how and where to write.

use std::path::{Path, PathBuf};

use mostrace::export::{Format, Output};
use mostrace::tables::Table;

use super::UsageError;

/// Those of formats, and those of a table's text.
const ENDINGS: [&str; 5] = ["json", "csv", "parquet", "txt", "text"];

/// `--format`, `--json`, `-o`.
#[derive(clap::Args)]
pub struct OutArgs {
    /// How to write; by default as the ending of FILE says, or else a table
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Where to write; - is the standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl OutArgs {
    /// The format, whichever way it was chosen.
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

    /// Whoever names a file of another program's expects that it can read it.
    fn check_ending(&self) -> anyhow::Result<()> {
        let ending = self.output.as_ref().and_then(|path| path.extension());
        let is_known = ending.is_none_or(|ending| ENDINGS.iter().any(|known| ending == *known));
        if is_known || self.json || self.format.is_some() {
            return Ok(());
        }
        let path = self.output.as_deref().unwrap_or(Path::new("-"));
        let what = format!(
            "{}: of which format is not known by its ending: --format says it (table, csv, csv-safe, json, parquet)",
            path.display()
        );
        Err(UsageError(what).into())
    }

    /// Creates the output: before the long run, so that a wrong path is found at once.
    pub fn create(&self) -> anyhow::Result<Output> {
        self.check_ending()?;
        let output = Output::create(self.output.as_deref())?;
        if self.format() == Format::Parquet && output.is_terminal() {
            let what = "parquet is not for terminals: write it to a file (-o FILE) or a pipe";
            return Err(UsageError(what.into()).into());
        }
        Ok(output)
    }
}

/// Only these columns of a table, in this order; of none, all.
///
/// # Errors
/// There is no column of such a name.
pub fn chosen(columns: &[String], table: Table) -> anyhow::Result<Table> {
    if columns.is_empty() {
        return Ok(table);
    }
    let has = |name: &&String| table.frame.column(name).is_err();
    if let Some(name) = columns.iter().find(has) {
        let all = table.frame.columns().iter();
        let names: Vec<&str> = all.map(|column| column.name().as_str()).collect();
        let names = names.join(", ");
        let what = format!("no column {name} in this table: it has {names}");
        return Err(UsageError(what).into());
    }
    Ok(table.select(columns)?)
}
