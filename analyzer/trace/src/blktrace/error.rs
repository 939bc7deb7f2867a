// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors in a trace's files.

use mostrace_bundle::blk_io_trace::BLK_IO_TRACE_MAGIC;
use std::fmt;
use std::path::{Path, PathBuf};

/// A trace cannot be read; the message is one line with the file and the place.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No file has that name.
    #[error("{}: no such trace (looked for it and for {}.blktrace.N)", .0.display(), .0.display())]
    NotFound(PathBuf),
    /// The file cannot be opened or read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file cannot be read beyond some place.
    #[error("{}: {problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The problem and its place.
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

/// A problem in the bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A record should begin here, but the magic number is another one.
    BadMagic {
        /// The number found, read as little-endian.
        magic: u32,
        /// Byte offset in the file.
        offset: u64,
    },
    /// The file ends inside a record.
    Truncated {
        /// Byte offset of the record.
        offset: u64,
        /// The record's minimum length, by its beginning.
        needed: usize,
        /// Bytes that are present.
        left: usize,
    },
}

impl Problem {
    /// Returns the byte offset of the problem in the file.
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
                "not a blktrace file ({left} bytes, and a record has at least {needed})"
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
