// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors. Each message is one line that names the file and includes its cause, so there is no chain to print.

use std::path::{Path, PathBuf};

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a workload did not run, or did not finish.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A MobiGen script cannot be read.
    #[error(transparent)]
    Script(#[from] mostrace_replay::Error),
    /// A setting is out of range.
    #[error("{0}")]
    Setting(String),
    /// The database exists, and neither keeping nor overwriting it was requested.
    #[error("{}: exists; --overwrite removes it, --keep works in it", .0.display())]
    Exists(PathBuf),
    /// The file to overwrite is not an SQLite database.
    #[error("{}: not an SQLite database, so it is not overwritten", .0.display())]
    NotDatabase(PathBuf),
    /// The database has too few rows for the updates or deletions.
    #[error("{}: {have} rows, and {op} needs {need}: insert them first with --prepare", .path.display())]
    TooFewRows {
        /// The database.
        path: PathBuf,
        /// `update` or `delete`.
        op: &'static str,
        /// Number of existing rows.
        have: u64,
        /// Number of rows that are needed.
        need: u64,
    },
    /// An expected row does not exist.
    #[error("{}: row {id} is missing: create the database again with --prepare --overwrite", .path.display())]
    MissingRow {
        /// The database.
        path: PathBuf,
        /// `id` of the row.
        id: i64,
    },
    /// A pragma has another value than the requested one.
    #[error("{}: {pragma} is {have}, not {asked}", .path.display())]
    Pragma {
        /// The database.
        path: PathBuf,
        /// Name of the pragma.
        pragma: &'static str,
        /// The value that SQLite reports.
        have: String,
        /// The requested value.
        asked: String,
    },
    /// SQLite failed: the file is not writable, the disk is full, the database is damaged or locked.
    #[error("{}: {doing}: {}", .path.display(), in_short(.cause, .path))]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// The step that failed.
        doing: &'static str,
        /// SQLite's error.
        cause: rusqlite::Error,
    },
    /// A shared library cannot be loaded, or is not SQLite.
    #[error("{}: {}", .path.display(), .why.replace('\n', " "))]
    Library {
        /// The path as given.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A line of a script or a log is malformed.
    #[error("{}:{line}: {why}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line number, counted from 1.
        line: u64,
        /// The fault that was found.
        why: String,
    },
    /// A file could not be read, written or removed.
    #[error("{}: {cause}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |cause| Self::Io {
            path: path.to_owned(),
            cause,
        }
    }

    pub(crate) fn sqlite<'a>(
        path: &'a Path,
        doing: &'static str,
    ) -> impl FnOnce(rusqlite::Error) -> Self + use<'a> {
        move |cause| Self::Sqlite {
            path: path.to_owned(),
            doing,
            cause,
        }
    }
}

/// Returns SQLite's message in one line, without the path that rusqlite appends after a failed open.
fn in_short(error: &rusqlite::Error, path: &Path) -> String {
    let text = match error {
        rusqlite::Error::SqliteFailure(code, None) => code.to_string(),
        other => other.to_string(),
    };
    let path = format!(": {}", path.display());
    text.strip_suffix(&path).unwrap_or(&text).replace('\n', " ")
}
