// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of reading and writing bundles. Every message names the file and the place.

use std::io;
use std::path::{Path, PathBuf};

/// An error of reading or writing a bundle.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused the operation.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file's contents are invalid.
    #[error("{}: {what}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The fault, and its place in the file.
        what: String,
    },
    /// The file is sound, but this version or machine cannot read it.
    #[error("{}: {what}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The feature that is not supported.
        what: String,
    },
}

impl Error {
    pub(crate) fn corrupt(path: &Path, what: impl Into<String>) -> Error {
        Error::Corrupt {
            path: path.to_owned(),
            what: what.into(),
        }
    }

    pub(crate) fn unsupported(path: &Path, what: impl Into<String>) -> Error {
        Error::Unsupported {
            path: path.to_owned(),
            what: what.into(),
        }
    }
}

/// Attaches a path to an error of the operating system.
pub(crate) trait At<T> {
    fn at(self, path: &Path) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::Io {
            path: path.to_owned(),
            source: source.into(),
        })
    }
}
