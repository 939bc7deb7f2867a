// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds-checked reads from an image file, a block device, or an image in memory.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::fs::error::{Error, Result};
use crate::fs::patches::Patches;
pub use crate::fs::read_at::ReadAt;

/// Number of bytes read at once.
const READ_AT_ONCE: usize = 64 << 10;

/// An opened image.
pub struct Image {
    source: Arc<Source>,
    path: PathBuf,
    bytes: u64,
    /// The blocks that a replayed journal changes.
    patches: Patches,
}

enum Source {
    File(File),
    Other(Box<dyn ReadAt>),
    /// What begins at byte `start` of another one.
    Part {
        of: Arc<Source>,
        start: u64,
    },
}

impl ReadAt for Source {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Source::File(file) => ReadAt::read_exact_at(file, buf, offset),
            Source::Other(bytes_of) => bytes_of.read_exact_at(buf, offset),
            Source::Part { of, start } => of.read_exact_at(buf, offset.saturating_add(*start)),
        }
    }

    fn next_data(&self, offset: u64) -> u64 {
        match self {
            Source::File(file) => ReadAt::next_data(file, offset),
            Source::Other(bytes_of) => bytes_of.next_data(offset),
            Source::Part { of, start } => {
                let next = of.next_data(offset.saturating_add(*start));
                next.saturating_sub(*start).max(offset)
            }
        }
    }
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
            source: Arc::new(Source::File(file)),
            path: path.to_owned(),
            bytes,
            patches: Patches::default(),
        })
    }

    /// Makes an image of `bytes` bytes with a reader of its own. `path` names it in errors and is never opened.
    pub fn new(path: &Path, bytes: u64, bytes_of: impl ReadAt + 'static) -> Image {
        Image {
            source: Arc::new(Source::Other(Box::new(bytes_of))),
            path: path.to_owned(),
            bytes,
            patches: Patches::default(),
        }
    }

    /// Returns the same image with changed blocks; those of `self` are replaced.
    pub(super) fn with(&self, patches: Patches) -> Image {
        Image {
            source: Arc::clone(&self.source),
            path: self.path.clone(),
            bytes: self.bytes,
            patches,
        }
    }

    /// Returns the part of the image that begins at byte `start` and has `bytes` bytes, as far as the image reaches.
    pub(super) fn part(&self, start: u64, bytes: u64) -> Image {
        Image {
            source: Arc::new(Source::Part {
                of: Arc::clone(&self.source),
                start,
            }),
            path: self.path.clone(),
            bytes: self.bytes.saturating_sub(start).min(bytes),
            patches: Patches::default(),
        }
    }

    /// Returns the changed blocks.
    pub(super) fn patches(&self) -> &Patches {
        &self.patches
    }

    /// Returns the file or the device; None if the image is read in another way, or if blocks of it were changed in memory.
    pub(super) fn file(&self) -> Option<&File> {
        match &*self.source {
            Source::File(file) if self.patches.is_empty() => Some(file),
            _ => None,
        }
    }

    /// Returns true if the image is a block device that is mounted, or in use by the kernel in another way.
    pub(super) fn is_in_use(&self) -> bool {
        match &*self.source {
            Source::File(file) => is_in_use(file, &self.path),
            // The page cache of a disk is not that of its partition, in which a mounted filesystem lies.
            Source::Other(_) | Source::Part { .. } => false,
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
        let next = self.source.next_data(offset);
        let patched = self.patches.next(offset).unwrap_or(self.bytes);
        next.min(patched).min(self.bytes)
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
        let source = &*self.source;
        let read = source.read_exact_at(buf, offset);
        let patched = read.and_then(|()| self.patches.apply(buf, offset, source));
        patched.map_err(|source| self.io(at, source))
    }

    /// Fills `buf` from byte `offset` on, for a reader of another format.
    pub(super) fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let checked = self.check(offset, buf.len(), "");
        checked.map_err(|_| io::ErrorKind::UnexpectedEof)?;
        self.source.read_exact_at(buf, offset)
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

/// Returns true if a block device is mounted or a part of another device: the kernel refuses an exclusive use of it.
#[cfg(target_os = "linux")]
fn is_in_use(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    let metadata = file.metadata();
    metadata.is_ok_and(|m| m.file_type().is_block_device()) && {
        let flags = rustix::fs::OFlags::EXCL.bits().cast_signed();
        let opened = File::options().read(true).custom_flags(flags).open(path);
        opened.is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy)
    }
}

#[cfg(not(target_os = "linux"))]
fn is_in_use(_file: &File, _path: &Path) -> bool {
    false
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
