// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with a trace's files.

use mostrace_bundle::blk_io_trace::BLK_IO_TRACE_MAGIC;
use std::fmt;
use std::path::{Path, PathBuf};

/// A trace that cannot be read, one line naming the file and the place.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing there by that name.
    #[error("{}: no such trace (looked for it and for {}.blktrace.N)", .0.display(), .0.display())]
    NotFound(PathBuf),
    /// The file cannot be opened or read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file cannot be read from some place on.
    #[error("{}: {problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        problem: Problem,
    },
}

impl Error {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}

/// What is wrong with the bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Where a record should begin stands another number.
    BadMagic {
        /// That number, read little-endian.
        magic: u32,
        /// Byte offset in the file.
        offset: u64,
    },
    /// The file ends inside a record.
    Truncated {
        /// Byte offset of the record.
        offset: u64,
        /// The record's length as far as its beginning tells.
        needed: usize,
        /// Bytes that are there.
        left: usize,
    },
}

impl Problem {
    /// Where in the file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        match *self {
            Self::BadMagic { offset, .. } | Self::Truncated { offset, .. } => offset,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BadMagic { magic, offset } => {
                for seen in [magic, magic.swap_bytes()] {
                    if seen & !0xff == BLK_IO_TRACE_MAGIC {
                        let version = seen & 0xff;
                        return write!(
                            f,
                            "blktrace records of version {version} at byte {offset}, only 7 and 8 are known"
                        );
                    }
                }
                match offset {
                    0 => write!(f, "not a blktrace file (bad magic {magic:#010x} at byte 0)"),
                    _ => write!(
                        f,
                        "no blktrace record at byte {offset} (bad magic {magic:#010x})"
                    ),
                }
            }
            Self::Truncated {
                offset: 0,
                needed,
                left,
            } => write!(
                f,
                "not a blktrace file ({left} bytes, and a record has {needed} at least)"
            ),
            Self::Truncated {
                offset,
                needed,
                left,
            } => write!(
                f,
                "the last record, at byte {offset}, is cut off ({left} of at least {needed} bytes)"
            ),
        }
    }
}
