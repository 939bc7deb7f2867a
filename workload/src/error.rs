// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong; every message is one line that names the file and holds its cause, so there is no chain to print.

use std::path::{Path, PathBuf};

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a workload did not run, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting is out of its range.
    #[error("{0}")]
    Setting(String),
    /// There is a database, and neither keeping nor overwriting it was asked for.
    #[error("{}: exists: --overwrite removes it, --keep works in it", .0.display())]
    Exists(PathBuf),
    /// A file that is not a database is never overwritten.
    #[error("{}: not an SQLite database: not overwritten", .0.display())]
    NotDatabase(PathBuf),
    /// Updates and deletions need rows.
    #[error("{}: {have} rows, and {op} needs {need}: make them first with --prepare", .path.display())]
    TooFewRows {
        /// The database.
        path: PathBuf,
        /// `update` or `delete`.
        op: &'static str,
        /// Rows there are.
        have: u64,
        /// Rows asked for.
        need: u64,
    },
    /// The row was expected and is not there.
    #[error("{}: row {id} is missing: make the database anew with --prepare --overwrite", .path.display())]
    MissingRow {
        /// The database.
        path: PathBuf,
        /// `id` of the row.
        id: i64,
    },
    /// A pragma had another effect than the one asked for.
    #[error("{}: {pragma} is {have}, not {asked}", .path.display())]
    Pragma {
        /// The database.
        path: PathBuf,
        /// Name of the pragma.
        pragma: &'static str,
        /// What SQLite answers.
        have: String,
        /// What was asked for.
        asked: String,
    },
    /// SQLite's own error: not writable, disk full, damaged, locked.
    #[error("{}: {doing}: {}", .path.display(), in_short(.cause, .path))]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// What SQLite says.
        cause: rusqlite::Error,
    },
    /// A shared library that cannot be loaded, or is none of SQLite's.
    #[error("{}: {}", .path.display(), .why.replace('\n', " "))]
    Library {
        /// As it was given.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A line of a script or a log that is none.
    #[error("{}:{line}: {why}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// A file could not be read, written or removed.
    #[error("{}: {cause}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
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

/// SQLite's message in one line, without the path that rusqlite ends a failed open with.
fn in_short(error: &rusqlite::Error, path: &Path) -> String {
    let text = match error {
        rusqlite::Error::SqliteFailure(code, None) => code.to_string(),
        other => other.to_string(),
    };
    let path = format!(": {}", path.display());
    text.strip_suffix(&path).unwrap_or(&text).replace('\n', " ")
}
