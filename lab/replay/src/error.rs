// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors. Each message is one line that names the file and includes its cause.

use std::path::{Path, PathBuf};

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why operations could not be read or replayed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bundle, or its table of operations, cannot be read.
    #[error(transparent)]
    Bundle(#[from] mostrace_bundle::Error),
    /// The bundle has no operations.
    #[error("{}: no operations were recorded; record again with --operations", .0.display())]
    NoOperations(PathBuf),
    /// A line of a text is malformed.
    #[error("{}:{line}: {why}", .path.display())]
    Line {
        /// The text.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The fault.
        why: String,
    },
    /// A recording asks for more than a replay allows.
    #[error("{}: {why}", .path.display())]
    Refused {
        /// The recording, the folder of the replay, or a file in it.
        path: PathBuf,
        /// What the recording asks for.
        why: String,
    },
    /// A file or folder cannot be read or written.
    #[error("{}: {cause}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
}

impl Error {
    /// Returns a function that adds the path to a system error.
    pub(crate) fn io<E: Into<std::io::Error>>(path: &Path) -> impl FnOnce(E) -> Error + '_ {
        move |cause| Error::Io {
            path: path.to_owned(),
            cause: cause.into(),
        }
    }
}
