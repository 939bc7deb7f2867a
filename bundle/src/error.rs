// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with a bundle; every message names the file and the place.

use std::io;
use std::path::{Path, PathBuf};

/// An error of reading or writing a bundle.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The bytes do not make sense.
    #[error("{}: {what}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What and where.
        what: String,
    },
    /// Sound, but not for this version or machine.
    #[error("{}: {what}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What is asked for.
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

/// Ties an error of the operating system to its file.
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
