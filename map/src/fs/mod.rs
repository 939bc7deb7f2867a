// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map builders, one folder per filesystem.

use std::io;
use std::path::{Path, PathBuf};

use crate::Map;

pub mod ext4;
pub mod f2fs;
pub mod fat;
mod image;
mod le;
mod recognise;

pub use image::{Image, ReadAt};
use recognise::Filesystem;

/// Builds the map of the filesystem on an image that begins at `start_sector` of its disk.
///
/// # Errors
/// No filesystem is recognised, or its builder finds none that it can read.
pub fn build(image: &Image, start_sector: u64) -> Result<Map> {
    match recognise::recognise(image)? {
        Some(Filesystem::Ext) => ext4::build_image(image, start_sector),
        Some(Filesystem::F2fs) => f2fs::build(image, start_sector),
        Some(Filesystem::Fat) => fat::build(image, start_sector),
        Some(Filesystem::ExFat) => Err(image.unsupported(
            "boot record",
            "exFAT: ext4, ext3, ext2, f2fs and FAT can be mapped",
        )),
        None => Err(image.corrupt("first blocks", "no filesystem recognised")),
    }
}

/// Why there is no map. Each prints as one line that names the file and the place.
#[derive(Debug, thiserror::Error)]
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
    fn open(path: &Path, source: io::Error) -> Error {
        Error::Io {
            path: path.to_owned(),
            at: "open".into(),
            source,
        }
    }
}

/// The result of a map builder.
pub type Result<T> = std::result::Result<T, Error>;

/// What could not be resolved; the first lines are kept, the rest counted.
#[derive(Debug, Default)]
struct Notices {
    lines: Vec<String>,
    more: usize,
}

impl Notices {
    const KEPT: usize = 100;

    /// Adds one line.
    fn push(&mut self, line: impl Into<String>) {
        if self.lines.len() < Self::KEPT {
            self.lines.push(line.into());
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    /// The lines, the last of them saying how many were left out.
    fn into_lines(mut self) -> Vec<String> {
        if self.more > 0 {
            self.lines.push(format!("and {} more", self.more));
        }
        self.lines
    }
}
