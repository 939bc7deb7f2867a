// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds-checked reads from an image file, a block device, or an image in memory.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::fs::error::{Error, Result};

/// Random access to an image's bytes.
pub trait ReadAt: Send + Sync {
    /// Fills `buf` from byte `offset` on; the caller has checked that the range is inside the image.
    ///
    /// # Errors
    /// Returns an error if the range cannot be read.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;
}

impl ReadAt for File {
    #[cfg(unix)]
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buf, offset)
    }

    #[cfg(not(unix))]
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        use std::io::Read;
        let mut file = self;
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(buf)
    }
}

impl ReadAt for Vec<u8> {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let end = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let from = usize::try_from(offset).map_err(|_| end())?;
        let part = self
            .get(from..)
            .and_then(|rest| rest.get(..buf.len()))
            .ok_or_else(end)?;
        buf.copy_from_slice(part);
        Ok(())
    }
}

/// Number of bytes read at once.
const READ_AT_ONCE: usize = 64 << 10;

/// An opened image.
pub struct Image {
    source: Source,
    path: PathBuf,
    bytes: u64,
}

enum Source {
    File(File),
    Other(Box<dyn ReadAt>),
}

impl Image {
    /// Opens an image file or a block device for reading.
    ///
    /// # Errors
    /// Returns an error if the path cannot be opened, or is neither a file nor a block device.
    pub fn open(path: &Path) -> Result<Image> {
        let mut file = open_file(path)?;
        forget_cached(&file);
        let bytes = file
            .seek(SeekFrom::End(0))
            .map_err(|source| Error::open(path, source))?;
        Ok(Image {
            source: Source::File(file),
            path: path.to_owned(),
            bytes,
        })
    }

    /// Makes an image of `bytes` bytes with a reader of its own. `path` names it in errors and is never opened.
    pub fn new(path: &Path, bytes: u64, bytes_of: impl ReadAt + 'static) -> Image {
        Image {
            source: Source::Other(Box::new(bytes_of)),
            path: path.to_owned(),
            bytes,
        }
    }

    /// Returns the file or the device; None if something else reads the image.
    pub(super) fn file(&self) -> Option<&File> {
        match &self.source {
            Source::File(file) => Some(file),
            Source::Other(_) => None,
        }
    }

    /// Returns the length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the path that names the image in errors.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the offset of the first byte from `offset` on that may not be zero, or the end of the image. A snapshot
    /// is a file with holes, and may represent a device that is far larger than itself.
    pub(super) fn next_data(&self, offset: u64) -> u64 {
        match &self.source {
            Source::File(file) => next_data(file, offset).unwrap_or(self.bytes),
            Source::Other(_) => offset,
        }
        .min(self.bytes)
    }

    /// Reads exactly `len` bytes at byte `offset`; `at` names the structure in errors.
    ///
    /// # Errors
    /// Returns an error if the range is not inside the image or cannot be read.
    pub fn read(&self, offset: u64, len: usize, at: impl Display) -> Result<Vec<u8>> {
        self.check(offset, len, &at)?;
        let mut buf = vec![0; len];
        self.fill(&mut buf, offset, at)?;
        Ok(buf)
    }

    /// Reads as [`Image::read`] does; holes of the image take neither time nor memory.
    pub(super) fn read_sparse(&self, offset: u64, len: usize, at: impl Display) -> Result<Vec<u8>> {
        self.check(offset, len, &at)?;
        let mut buf = vec![0; len];
        let mut from = 0usize;
        loop {
            let place = offset.saturating_add(u64::try_from(from).unwrap_or(u64::MAX));
            let skipped = self.next_data(place).saturating_sub(place);
            from = from.saturating_add(usize::try_from(skipped).unwrap_or(usize::MAX));
            let Some(rest) = buf.get_mut(from..).filter(|rest| !rest.is_empty()) else {
                return Ok(buf);
            };
            let some = rest.len().min(READ_AT_ONCE);
            let place = place.saturating_add(skipped);
            self.fill(rest.get_mut(..some).unwrap_or_default(), place, &at)?;
            from = from.saturating_add(some);
        }
    }

    /// Fills `buf` from byte `offset` on; `at` names the structure in errors.
    ///
    /// # Errors
    /// Returns an error if the range is not inside the image or cannot be read.
    pub fn read_into(&self, buf: &mut [u8], offset: u64, at: impl Display) -> Result<()> {
        self.check(offset, buf.len(), &at)?;
        self.fill(buf, offset, at)
    }

    /// Checks a range before memory is allocated for it: a damaged image may ask for any length.
    fn check(&self, offset: u64, len: usize, at: impl Display) -> Result<()> {
        let room = self.bytes.saturating_sub(offset);
        if u64::try_from(len).is_ok_and(|len| len <= room) {
            return Ok(());
        }
        let what = format!(
            "at byte {offset}, but the image ends at byte {}",
            self.bytes
        );
        Err(self.corrupt(at, what))
    }

    /// Returns true if these bytes lie in a hole and so are zeros.
    pub(super) fn is_hole(&self, bytes: std::ops::Range<u64>) -> bool {
        self.next_data(bytes.start) >= bytes.end.min(self.bytes)
    }

    fn fill(&self, buf: &mut [u8], offset: u64, at: impl Display) -> Result<()> {
        let read = match &self.source {
            Source::File(file) => ReadAt::read_exact_at(file, buf, offset),
            Source::Other(bytes_of) => bytes_of.read_exact_at(buf, offset),
        };
        read.map_err(|source| self.io(at, source))
    }

    /// Makes an I/O error that names this image.
    pub fn io(&self, at: impl Display, source: io::Error) -> Error {
        Error::Io {
            path: self.path.clone(),
            at: at.to_string(),
            source,
        }
    }

    /// Makes an error for damage in this image.
    pub fn corrupt(&self, at: impl Display, what: impl Into<String>) -> Error {
        Error::Corrupt {
            path: self.path.clone(),
            at: at.to_string(),
            what: what.into(),
        }
    }

    /// Makes an error for a sound part of this image that is not supported.
    pub fn unsupported(&self, at: impl Display, what: impl Into<String>) -> Error {
        Error::Unsupported {
            path: self.path.clone(),
            at: at.to_string(),
            what: what.into(),
        }
    }
}

/// Drops a block device's clean pages from the page cache. f2fs caches its metadata elsewhere, so pages that an earlier
/// reader left there may be stale. Dirty pages (ext4, FAT) stay.
#[cfg(target_os = "linux")]
fn forget_cached(file: &File) {
    use std::os::unix::fs::FileTypeExt;
    let is_device = file
        .metadata()
        .is_ok_and(|m| m.file_type().is_block_device());
    if is_device {
        // This is only advice: if the kernel ignores it, the map is as old as the cache.
        let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
    }
}

#[cfg(not(target_os = "linux"))]
fn forget_cached(_file: &File) {}

/// Returns the offset of the next data; None if there are only holes; `offset` itself if the filesystem cannot tell.
#[cfg(target_os = "linux")]
fn next_data(file: &File, offset: u64) -> Option<u64> {
    use rustix::fs::{SeekFrom, seek};
    match seek(file, SeekFrom::Data(offset)) {
        Ok(at) => Some(at),
        Err(rustix::io::Errno::NXIO) => None,
        Err(_) => Some(offset),
    }
}

#[cfg(not(target_os = "linux"))]
fn next_data(_file: &File, offset: u64) -> Option<u64> {
    Some(offset)
}

/// Opens a path that can hold an image. Opening a FIFO would block; a folder can be opened but not read.
fn open_file(path: &Path) -> Result<File> {
    let io = |source| Error::open(path, source);
    let kind = std::fs::metadata(path).map_err(io)?.file_type();
    if kind.is_dir() || is_stream(&kind) {
        return Err(io(io::Error::other(
            "neither an image file nor a block device",
        )));
    }
    File::open(path).map_err(io)
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
