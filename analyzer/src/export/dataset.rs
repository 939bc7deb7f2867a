// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a trace as a data set of Parquet files, partitioned by bundle in the way of Hive:
//!
//! ```text
//! FOLDER/events/bundle=NAME/0.parquet       a row of `events`, with every column of the catalogue
//! FOLDER/requests/bundle=NAME/0.parquet     a row per completion
//! FOLDER/causes/bundle=NAME/0.parquet       a row per share of an event; the bytes of an event's shares sum to its own
//! FOLDER/processes/bundle=NAME/0.parquet    a row per thread, the first one for unknown threads
//! FOLDER/files/bundle=NAME/0.parquet        a row per file, the first one for blocks of no file
//! FOLDER/recordings/bundle=NAME/0.parquet   one row, with the kernel, the disk and the filesystem
//! FOLDER/transactions/bundle=NAME/0.parquet a row per transaction of SQLite's that the calls show
//! ```
//!
//! `completion` joins events, requests and causes of a bundle.

use std::fs;
use std::path::{Path, PathBuf};

use polars::prelude::PolarsError;

use super::Format;
use super::output::{Output, WriteError};
use crate::facts::{Column, Facts, catalogue};
use crate::tables::relations::Relation;
use crate::tables::{Table, about};

/// A data set could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A directory cannot be created, or already has this bundle.
    #[error("{}: {source}", path.display())]
    Folder {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The rows cannot be read.
    #[error("temporary files: {0}")]
    Rows(#[from] PolarsError),
}

type Result<T> = std::result::Result<T, Error>;

/// The tables, in the order of the list above.
const TABLES: [&str; 7] = [
    "events",
    "requests",
    "causes",
    "processes",
    "files",
    "recordings",
    "transactions",
];

/// The files of one bundle in a data set.
pub struct Dataset {
    outputs: Vec<Output>,
}

impl Dataset {
    /// Creates the directories and files; call it before the long analysis, so that a wrong path is noticed at once.
    ///
    /// # Errors
    /// Returns an error if they cannot be created or already exist.
    pub fn create(folder: &Path, bundle: &Path) -> Result<Dataset> {
        let name = partition(&about::name(bundle, None));
        let create = |table: &&str| {
            let of_table = folder.join(table);
            let path = of_table.join(format!("bundle={name}"));
            let failed = |source| Error::Folder {
                path: path.clone(),
                source,
            };
            fs::create_dir_all(&of_table).map_err(failed)?;
            // An existing directory is not overwritten.
            fs::create_dir(&path).map_err(failed)?;
            Ok(Output::create(Some(&path.join("0.parquet")))?)
        };
        let outputs = TABLES.iter().map(create).collect::<Result<_>>()?;
        Ok(Dataset { outputs })
    }

    /// Writes all tables.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    pub fn write(mut self, facts: &Facts) -> Result<()> {
        let [events, relations @ ..] = &mut self.outputs[..] else {
            return Ok(());
        };
        let all: Vec<&Column> = catalogue::ALL.iter().filter(|c| !c.derived).collect();
        let of_events = facts.frames(&all, None).map(|frame| frame.map(Table::from));
        Format::Parquet.write_all(events, of_events)?;
        for (relation, output) in Relation::ALL.iter().copied().zip(relations) {
            let pieces = relation.of(facts).map(|piece| piece.map(without_bundle));
            Format::Parquet.write_all(output, pieces)?;
        }
        Ok(())
    }
}

/// Drops the column `bundle`, which the directory's name replaces.
fn without_bundle(table: Table) -> Table {
    table.frame.drop_many(["bundle"]).into()
}

/// Makes a text usable as a directory's name and as a partition's value.
fn partition(name: &str) -> String {
    let plain = |c: char| {
        if c.is_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '_'
        }
    };
    name.chars().map(plain).collect()
}
