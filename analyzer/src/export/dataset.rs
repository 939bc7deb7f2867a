// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace as a data set of Parquet files, partitioned by bundle as Hive has it:
//!
//! ```text
//! FOLDER/events/bundle=NAME/0.parquet       a row of `events`, with every column of the catalogue
//! FOLDER/requests/bundle=NAME/0.parquet     a row per completion
//! FOLDER/causes/bundle=NAME/0.parquet       a row per share of an event; the bytes of an event's shares sum to its own
//! FOLDER/processes/bundle=NAME/0.parquet    a row per thread, the first of them of nobody
//! FOLDER/files/bundle=NAME/0.parquet        a row per file, the first of them of none
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

/// Why a data set could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A folder cannot be made, or has this bundle already.
    #[error("{}: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
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

/// The tables, in the order of the page above.
const TABLES: [&str; 5] = ["events", "requests", "causes", "processes", "files"];

/// One bundle's files in a data set.
pub struct Dataset {
    outputs: Vec<Output>,
}

impl Dataset {
    /// Makes the folders and files: before the long run, so that a wrong path is found at once.
    ///
    /// # Errors
    /// They cannot be made, or are there.
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
            // Not in the place of one that is there.
            fs::create_dir(&path).map_err(failed)?;
            Ok(Output::create(Some(&path.join("0.parquet")))?)
        };
        let outputs = TABLES.iter().map(create).collect::<Result<_>>()?;
        Ok(Dataset { outputs })
    }

    /// Writes all tables.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(mut self, facts: &Facts) -> Result<()> {
        let [events, requests, causes, processes, files] = &mut self.outputs[..] else {
            return Ok(());
        };
        let all: Vec<&Column> = catalogue::ALL.iter().filter(|c| !c.derived).collect();
        let of_events = facts.frames(&all, None).map(|frame| frame.map(Table::from));
        Format::Parquet.write_all(events, of_events)?;
        let outputs = [requests, causes, processes, files];
        for (relation, output) in Relation::ALL.into_iter().zip(outputs) {
            let pieces = relation.of(facts).map(|piece| piece.map(without_bundle));
            Format::Parquet.write_all(output, pieces)?;
        }
        Ok(())
    }
}

/// The folder says it.
fn without_bundle(table: Table) -> Table {
    table.frame.drop_many(["bundle"]).into()
}

/// A name that is a folder's and a value's.
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
