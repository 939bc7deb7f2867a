// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of building a map.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why no map could be built. Displays as one line that names the file and the place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The image could not be read.
    #[error("{}: {at}: {source}", path.display())]
    Io {
        /// The image.
        path: PathBuf,
        /// The step that failed.
        at: String,
        /// The system's error.
        source: io::Error,
    },
    /// The image holds no such filesystem, or a damaged one.
    #[error("{}: {at}: {what}", path.display())]
    Corrupt {
        /// The image.
        path: PathBuf,
        /// The on-disk structure.
        at: String,
        /// The fault that was found.
        what: String,
    },
    /// Nothing in the image looks like a filesystem that can be mapped.
    #[error("{}: first blocks: no filesystem recognised{}", path.display(), what.map_or(String::new(), |what| format!(": this is {what}")))]
    Unrecognised {
        /// The image.
        path: PathBuf,
        /// What it is instead, and how to get at the filesystem, if that is known.
        what: Option<&'static str>,
    },
    /// The image is a whole disk, and no partition was asked for, or one that it does not have.
    #[error("{}: a disk with partitions: {list}: name one with --partition N", path.display())]
    Partitioned {
        /// The image.
        path: PathBuf,
        /// The partitions.
        list: String,
    },
    /// The filesystem is sound, but this reader does not support it.
    #[error("{}: {at}: not supported: {what}", path.display())]
    Unsupported {
        /// The image.
        path: PathBuf,
        /// The on-disk structure.
        at: String,
        /// The unsupported feature.
        what: String,
    },
    /// A program that the reader needs is not installed.
    #[error("{tool} not found: install {package}")]
    ToolMissing {
        /// The program.
        tool: &'static str,
        /// The package that provides it.
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
