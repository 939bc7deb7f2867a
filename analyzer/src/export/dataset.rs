// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace as a data set of Parquet files, partitioned by bundle as Hive has it:
//!
//! ```text
//! FOLDER/events/bundle=NAME/0.parquet       a row of `events`, with every column of the catalogue
//! FOLDER/requests/bundle=NAME/0.parquet     a row per completion
//! FOLDER/causes/bundle=NAME/0.parquet       a row per share of an event; the bytes of an event's shares sum to its own
//! FOLDER/processes/bundle=NAME/0.parquet    a row per thread
//! FOLDER/files/bundle=NAME/0.parquet        a row per file
//! ```
//!
//! `completion` joins events, requests and causes of a bundle.

use std::fs;
use std::path::{Path, PathBuf};

use polars::prelude::{DataFrame, DataType, Expr, IntoLazy, PolarsError, col, len};

use super::Format;
use super::output::{Output, WriteError};
use crate::facts::{Column, Facts, Part, Rows, catalogue};
use crate::tables::{Table, about, numbers, texts};
use crate::text::escape;

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

/// What is the same in all rows of a request, or its sum or first value, in that order.
const SAME: [&str; 15] = [
    "time_ns",
    "rwbs",
    "op",
    "device",
    "d2c_ns",
    "sync",
    "fua",
    "flush",
    "meta",
    "error",
    "size_bytes",
    "sequential",
    "device_flush",
    "time_utc",
    "stage",
];
const CAUSES: [&str; 10] = [
    "cause_pid",
    "cause_tgid",
    "cause_uid",
    "cause_comm",
    "cause_op",
    "cause_inode",
    "cause_path",
    "cause_role",
    "cause_known",
    "cause_package",
];

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
        Format::Parquet.write_all(requests, requests_of(facts))?;
        Format::Parquet.write_all(causes, causes_of(facts))?;
        Format::Parquet.write_all(processes, [processes_of(facts)])?;
        Format::Parquet.write_all(files, [files_of(facts)])?;
        Ok(())
    }
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

fn find(names: &[&str]) -> Vec<&'static Column> {
    names.iter().filter_map(|name| Column::find(name)).collect()
}

type Pieces<'f> = Box<dyn Iterator<Item = std::result::Result<Table, PolarsError>> + 'f>;

/// The rows of a request are in one batch.
fn requests_of(facts: &Facts) -> Pieces<'_> {
    let columns = [&["completion", "sector", "bytes", "q2c_ns"], &SAME[..]].concat();
    let group = |frame: DataFrame| {
        let same: Vec<Expr> = SAME.iter().map(|name| col(*name).first()).collect();
        let own = [
            col("sector").min(),
            col("bytes").sum(),
            col("q2c_ns").max(),
            len().cast(DataType::Int64).alias("events"),
        ];
        let aggregated: Vec<Expr> = own.into_iter().chain(same).collect();
        let requests = frame
            .lazy()
            .group_by_stable([col("completion")])
            .agg(aggregated);
        Ok(Table::from(requests.collect()?))
    };
    let frames = facts.frames(&find(&columns), None);
    Box::new(frames.map(move |frame| group(frame?)))
}

fn causes_of(facts: &Facts) -> Pieces<'_> {
    let names = [
        &["completion", "time_ns", "op", "sector", "bytes"],
        &CAUSES[..],
    ]
    .concat();
    let columns = find(&names)
        .iter()
        .map(|column| column.expr(facts))
        .collect();
    let shares = facts.view(columns, Part::Any, None, Rows::Shares);
    Box::new(shares.map(|view| Ok(Table::from(view?.collect()?))))
}

fn processes_of(facts: &Facts) -> std::result::Result<Table, PolarsError> {
    // The first one is nobody.
    let all = || facts.names().processes.iter().skip(1);
    let number = |name, value: fn(&crate::attribute::Process) -> Option<u32>| {
        numbers(
            name,
            all().map(move |process| value(process).map(u64::from)),
        )
    };
    Table::new(vec![
        number("pid", |p| p.pid),
        number("tgid", |p| p.tgid),
        number("uid", |p| p.uid),
        texts("comm", all().map(|p| p.comm.as_deref().map(escape))),
    ])
}

fn files_of(facts: &Facts) -> std::result::Result<Table, PolarsError> {
    // The first one is none.
    let all = || facts.names().files.iter().skip(1);
    let word = |word: &str| Some(word.to_owned());
    Table::new(vec![
        numbers("inode", all().map(|f| f.inode)),
        numbers("generation", all().map(|f| f.generation.map(u64::from))),
        texts("path", all().map(|f| f.path.as_deref().map(escape))),
        texts("kind", all().map(|f| word(f.kind.as_str()))),
        texts("role", all().map(|f| word(f.role?.as_str()))),
        texts("provenance", all().map(|f| word(f.provenance.as_str()))),
        texts("database", all().map(|f| f.database().map(escape))),
    ])
}
