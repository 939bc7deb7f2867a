// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds-checked reads of an image file or a block device.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::{Error, Result};

/// An opened image.
pub struct Image {
    file: File,
    path: PathBuf,
    bytes: u64,
}

impl Image {
    /// Opens an image file or a block device for reading.
    pub fn open(path: &Path) -> Result<Image> {
        let io = |source| Error::Io {
            path: path.to_owned(),
            at: "open".into(),
            source,
        };
        // A FIFO would make open() wait for ever; a directory opens but cannot be read.
        let kind = std::fs::metadata(path).map_err(io)?.file_type();
        if kind.is_dir() || is_stream(&kind) {
            return Err(io(io::Error::other(
                "neither an image file nor a block device",
            )));
        }
        let mut file = File::open(path).map_err(io)?;
        let bytes = file.seek(SeekFrom::End(0)).map_err(io)?;
        Ok(Image {
            file,
            path: path.to_owned(),
            bytes,
        })
    }

    /// Length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The open file, to hand to a tool.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Exactly `len` bytes from `offset`; `at` names the structure in errors.
    pub fn read(&self, offset: u64, len: usize, at: impl Display) -> Result<Vec<u8>> {
        let room = self.bytes.saturating_sub(offset);
        if u64::try_from(len).map_or(true, |len| len > room) {
            let what = format!(
                "at byte {offset}, but the image ends at byte {}",
                self.bytes
            );
            return Err(self.corrupt(at, what));
        }
        let mut buf = vec![0; len];
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))
            .and_then(|_| file.read_exact(&mut buf))
            .map_err(|source| self.io(at, source))?;
        Ok(buf)
    }

    /// An I/O error in this image.
    pub fn io(&self, at: impl Display, source: io::Error) -> Error {
        Error::Io {
            path: self.path.clone(),
            at: at.to_string(),
            source,
        }
    }

    /// A damage in this image.
    pub fn corrupt(&self, at: impl Display, what: impl Into<String>) -> Error {
        Error::Corrupt {
            path: self.path.clone(),
            at: at.to_string(),
            what: what.into(),
        }
    }

    /// Something in this image that is sound, but unknown here.
    pub fn unsupported(&self, at: impl Display, what: impl Into<String>) -> Error {
        Error::Unsupported {
            path: self.path.clone(),
            at: at.to_string(),
            what: what.into(),
        }
    }
}

#[cfg(unix)]
fn is_stream(kind: &std::fs::FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_fifo() || kind.is_char_device() || kind.is_socket()
}

#[cfg(not(unix))]
fn is_stream(_kind: &std::fs::FileType) -> bool {
    false
}
