// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong while capturing; one line each.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

/// An error of capturing.
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
    /// The bundle cannot be written.
    #[error(transparent)]
    Bundle(#[from] mostrace_bundle::Error),
    /// The filesystem cannot be mapped.
    #[error(transparent)]
    Map(#[from] mostrace_map::fs::Error),
    /// A device, a kernel or a tool is not as needed.
    #[error("{0}")]
    Unfit(String),
    /// The command could not be started.
    #[error("{command}: {source}")]
    Command {
        /// argv\[0\].
        command: String,
        /// Why.
        source: io::Error,
    },
    /// The kernel did not take the probes.
    #[error("BPF probes: {0}")]
    Bpf(String),
}

impl Error {
    pub(crate) fn unfit(what: impl Into<String>) -> Error {
        Error::Unfit(what.into())
    }

    pub(crate) fn bpf(what: impl Display) -> Error {
        Error::Bpf(format!("{what:#}"))
    }
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Ties an `io::Error` to its file.
pub(crate) trait At<T> {
    fn at(self, path: impl AsRef<Path>) -> Result<T>;
}

impl<T, E: Into<io::Error>> At<T> for std::result::Result<T, E> {
    fn at(self, path: impl AsRef<Path>) -> Result<T> {
        self.map_err(|e| Error::Io {
            path: path.as_ref().to_owned(),
            source: e.into(),
        })
    }
}

/// Reads a sysfs or tracefs file without the newline.
pub(crate) fn read_line(path: impl AsRef<Path>) -> Result<String> {
    let text = std::fs::read_to_string(&path).at(&path)?;
    Ok(text.trim_end().to_owned())
}

/// Writes a sysfs or tracefs file.
pub(crate) fn write_line(path: impl AsRef<Path>, text: &str) -> Result<()> {
    std::fs::write(&path, text).at(&path)
}
