// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random access to bytes.

use std::fs::File;
use std::io;
#[cfg(not(unix))]
use std::io::{Seek, SeekFrom};

/// Random access to an image's bytes.
pub trait ReadAt: Send + Sync {
    /// Fills `buf` from byte `offset` on; the caller has checked that the range is inside the image.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;

    /// Returns the offset of the first byte from `offset` on that may not be zero; the largest number if there is none.
    fn next_data(&self, offset: u64) -> u64 {
        offset
    }
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

    fn next_data(&self, offset: u64) -> u64 {
        next_data(self, offset).unwrap_or(u64::MAX)
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
