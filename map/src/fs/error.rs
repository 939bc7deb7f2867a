// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why there is no map.

use std::io;
use std::path::{Path, PathBuf};

/// Why there is no map. Each prints as one line that names the file and the place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The image could not be read.
    #[error("{}: {at}: {source}", path.display())]
    Io {
        /// The image.
        path: PathBuf,
        /// What was being done.
        at: String,
        /// The system's answer.
        source: io::Error,
    },
    /// Not such a filesystem, or a damaged one.
    #[error("{}: {at}: {what}", path.display())]
    Corrupt {
        /// The image.
        path: PathBuf,
        /// The on-disk structure.
        at: String,
        /// What is wrong with it.
        what: String,
    },
    /// Nothing that looks like a filesystem: an empty disk, or a whole one with partitions.
    #[error("{}: first blocks: no filesystem recognised", path.display())]
    Unrecognised {
        /// The image.
        path: PathBuf,
    },
    /// A sound filesystem that this reader does not know.
    #[error("{}: {at}: not supported: {what}", path.display())]
    Unsupported {
        /// The image.
        path: PathBuf,
        /// The on-disk structure.
        at: String,
        /// The unknown part.
        what: String,
    },
    /// A program that the reader needs is not installed.
    #[error("{tool} not found: install {package}")]
    ToolMissing {
        /// The program.
        tool: &'static str,
        /// The package that has it.
        package: &'static str,
    },
}

impl Error {
    pub(super) fn open(path: &Path, source: io::Error) -> Error {
        Error::Io {
            path: path.to_owned(),
            at: "open".into(),
            source,
        }
    }
}

/// The result of a map builder.
pub type Result<T> = std::result::Result<T, Error>;
