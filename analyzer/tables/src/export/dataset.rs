// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a trace into a data set: a folder of Parquet files that grows, by any number of writers at once.
//!
//! ```text
//! FOLDER/events/day=2026-11-25/ID.parquet       a row of `events`, with every column of the catalogue
//! FOLDER/requests/day=2026-11-25/ID.parquet     a row per completion
//! FOLDER/causes/day=2026-11-25/ID.parquet       a row per share of an event; the bytes of an event's shares sum to its own
//! FOLDER/processes/day=2026-11-25/ID.parquet    a row per thread, the first one for unknown threads
//! FOLDER/files/day=2026-11-25/ID.parquet        a row per file, the first one for blocks of no file
//! FOLDER/calls/day=2026-11-25/ID.parquet        a row per system call
//! FOLDER/transactions/day=2026-11-25/ID.parquet a row per transaction of SQLite's that the calls show
//! FOLDER/recordings/day=2026-11-25/ID.parquet   one row, with the kernel, the disk and the filesystem
//! ```
//!
//! ID is made from the recording's contents ([`identity`]), so a recording that is written twice is there once. Each file is written
//! under another name and renamed when it is whole. The file of `recordings` is the last one: a recording that has it is there as a
//! whole.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::DateTime;
use polars::prelude::{ChunkFull, IntoColumn, PolarsResult, StringChunked};

use super::Format;
use super::identity::{self, identity};
use crate::facts::{Column, Facts, Key, catalogue};
use crate::tables::relations::Relation;
use crate::tables::waits::Waits;
use crate::tables::{Table, calls, query};
use mostrace_trace::output::{Output, WriteError};
use mostrace_trace::recording::{self, Joined, Recording};

/// What stands for an unknown day in a folder's name; Spark, DuckDB and Delta read it as null.
const UNKNOWN_DAY: &str = "__HIVE_DEFAULT_PARTITION__";

/// A data set could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A folder cannot be created, or a file cannot get its name.
    #[error("{}: {source}", path.display())]
    Folder {
        /// The folder or file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The recording cannot be read.
    #[error(transparent)]
    Identity(#[from] identity::Error),
    /// The calls of the recording cannot be read.
    #[error(transparent)]
    Recording(#[from] recording::Error),
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

type Result<T> = std::result::Result<T, Error>;

/// A file that has another name until it is whole.
struct Part {
    output: Output,
    aside: PathBuf,
    path: PathBuf,
}

/// The files of one recording in a data set.
pub struct Dataset {
    id: String,
    events: Part,
    relations: Vec<(Relation, Part)>,
    calls: Part,
}

impl Dataset {
    /// Creates the folders and files; call it before the long analysis, so that a wrong path is noticed at once. With a key, the
    /// recording's identity is hashed, as names are. With `partial`, a bundle may lack parts. None if the data set has the recording already.
    ///
    /// # Errors
    /// Returns an error if the recording cannot be read or the files cannot be created.
    pub fn create(
        folder: &Path,
        recording: &Recording,
        key: Option<&Key>,
        partial: bool,
    ) -> Result<Option<Dataset>> {
        let id = identity(recording, key, partial)?;
        let day = day_of(recording).unwrap_or(UNKNOWN_DAY.to_owned());
        let path = |table: &str| {
            folder
                .join(table)
                .join(format!("day={day}"))
                .join(format!("{id}.parquet"))
        };
        if path(Relation::Recordings.name()).exists() {
            return Ok(None);
        }
        let part = |table: &str| Part::create(path(table), &id);
        let relations = Relation::ALL
            .iter()
            .map(|&one| Ok((one, part(one.name())?)));
        Ok(Some(Dataset {
            events: part(query::NAME)?,
            relations: relations.collect::<Result<_>>()?,
            calls: part(calls::NAME)?,
            id,
        }))
    }

    /// Writes all tables of a recording, whose calls are `recorded`; `waits` divides them.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    pub fn write<'f>(
        mut self,
        facts: &'f Facts,
        recorded: Option<recording::Table>,
        waits: Waits<'f, Joined>,
    ) -> Result<()> {
        let id = &self.id;
        let is_stored = |column: &&Column| !column.derived || column.name == "bundle";
        let all: Vec<&Column> = catalogue::ALL.iter().filter(is_stored).collect();
        let of_events = facts
            .frames(&all, None)
            .map(|frame| with_id(frame?.into(), id));
        Format::Parquet.write_all(&mut self.events.output, of_events)?;
        for (relation, part) in &mut self.relations {
            let pieces = relation.of(facts).map(|piece| with_id(piece?, id));
            Format::Parquet.write_all(&mut part.output, pieces)?;
        }
        let pieces = calls::of(facts, recorded, waits);
        let pieces = pieces.map(|piece| Ok::<_, calls::Error>(with_id(piece?, id)?));
        Format::Parquet.write_all(&mut self.calls.output, pieces)?;
        self.name_all()
    }

    /// Gives all files their names, `recordings` last.
    fn name_all(self) -> Result<()> {
        let (last, others): (Vec<_>, Vec<_>) = self
            .relations
            .into_iter()
            .partition(|(relation, _)| *relation == Relation::Recordings);
        let others = others.into_iter().chain(last).map(|(_, part)| part);
        [self.events, self.calls]
            .into_iter()
            .chain(others)
            .try_for_each(Part::name)
    }
}

impl Part {
    fn create(path: PathBuf, id: &str) -> Result<Part> {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(failed(folder))?;
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        // Readers' globs (*.parquet) pass over it. Two writers of one recording have two names.
        let aside = format!(".{id}.{}.{}.tmp", std::process::id(), since.as_nanos());
        let aside = folder.join(aside);
        Ok(Part {
            output: Output::create(Some(&aside))?,
            aside,
            path,
        })
    }

    /// Gives the file its name; what it replaces has the same contents.
    fn name(self) -> Result<()> {
        // A name must not survive a crash that its contents do not.
        let synced = File::open(&self.aside).and_then(|file| file.sync_all());
        synced.map_err(failed(&self.aside))?;
        fs::rename(&self.aside, &self.path).map_err(failed(&self.path))
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Folder { path, source }
}

/// Returns the day of UTC on which a recording began; None if the recording does not tell.
pub fn day_of(recording: &Recording) -> Option<String> {
    let begin = recording.manifest()?.begin_unix_ns()?;
    let begin = DateTime::from_timestamp_nanos(i64::try_from(begin).ok()?);
    Some(begin.format("%Y-%m-%d").to_string())
}

/// Adds the recording's identity to a table.
fn with_id(mut table: Table, id: &str) -> PolarsResult<Table> {
    let ids = StringChunked::full("bundle_id".into(), id, table.len());
    table.frame.with_column(ids.into_column())?;
    Ok(table)
}
