// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the traces that arguments name for tables, and the condition on rows.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use mostrace_tables::analysis::{Analysis, Options};
use mostrace_tables::facts::{Column, Filter};
use mostrace_trace::reading;
use mostrace_trace::recording::Recording;

use crate::bar::Bar;
use crate::shell;
use crate::source::warn;
pub use crate::source::{SourceArgs, state};
use crate::usage::UsageError;

impl SourceArgs {
    /// Returns the first trace's name as the user gave it.
    pub fn path(&self) -> &Path {
        self.bundles.first().map_or(Path::new(""), PathBuf::as_path)
    }

    /// Takes away the last of several names, for a command whose last argument is something else.
    pub fn take_last(&mut self) -> Option<OsString> {
        match &self.bundles[..] {
            [] | [_] => None,
            _ => self.bundles.pop().map(PathBuf::into_os_string),
        }
    }

    /// Returns true if damaged recordings are to be read as far as they can be.
    pub fn partial(&self) -> bool {
        self.partial
    }

    /// Reads and attributes the traces, and determines what these columns need.
    pub fn read_for<'c>(
        &self,
        columns: impl Iterator<Item = &'c &'static Column>,
    ) -> anyhow::Result<Analysis> {
        let needs = |(locality, causes): (bool, bool), column: &&Column| {
            let needs_locality = locality || column.needs_locality();
            (needs_locality, causes || column.needs_causes())
        };
        let (locality, causes) = columns.fold((false, false), needs);
        self.analyze(locality, causes)
    }

    /// Reads and attributes the traces. `locality` tracks which blocks were written before; `causes` finds who caused each
    /// row.
    pub fn analyze(&self, locality: bool, causes: bool) -> anyhow::Result<Analysis> {
        self.attribute(self.open_all()?, locality, causes)
    }

    /// Attributes recordings that are open already, as [`analyze`](Self::analyze) does.
    pub fn attribute(
        &self,
        recordings: Vec<Recording>,
        locality: bool,
        causes: bool,
    ) -> anyhow::Result<Analysis> {
        let options = Options {
            locality,
            ..self.reading(&recordings, causes)?
        };
        let bar = Bar::new();
        let analysis = Analysis::of(recordings, &options, &|progress| bar.at(progress))?;
        drop(bar);
        self.warn_of(analysis.recordings(), &analysis.warnings, &analysis.notices);
        Ok(analysis)
    }

    /// Opens the only recording, for formats that are made of its events alone.
    pub fn open(&self) -> anyhow::Result<Recording> {
        let mut recordings = self.open_all()?;
        let (Some(recording), true) = (recordings.pop(), recordings.is_empty()) else {
            return Err(several().into());
        };
        let warnings = reading::warnings(&recording);
        warn(std::slice::from_ref(&recording), warnings.iter());
        Ok(recording)
    }
}

/// Returns the error for commands that take only one recording.
pub fn several() -> UsageError {
    let what = "this needs a single recording, because several have neither time nor place in common: name one, or the segments of one";
    UsageError(what.into())
}

/// The condition on rows.
#[derive(clap::Args)]
pub struct WhereArgs {
    /// Only rows for which this holds: an SQL expression over the columns of `events`, for example
    /// "role = 'wal' AND bytes > 4096". It applies to whole rows, whatever is summed; for bytes with several causers,
    /// conditions on the cause apply to each share
    #[arg(long = "where", value_name = "EXPR")]
    condition: Option<String>,
}

impl WhereArgs {
    /// Returns the option as a shell reads it; empty if there is no condition.
    pub fn option(&self) -> String {
        let option = |text: &String| format!("--where {}", shell::plain(text));
        self.condition.as_ref().map(option).unwrap_or_default()
    }

    /// Returns the condition, if there is one.
    pub fn filter(&self) -> anyhow::Result<Option<Filter>> {
        let parse =
            |text: &String| Filter::parse(text).map_err(|e| UsageError(e.to_string()).into());
        self.condition.as_ref().map(parse).transpose()
    }
}
