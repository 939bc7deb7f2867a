// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device that stores what is read from it.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use mostrace_map::fs::ReadAt;

/// The largest alignment that O_DIRECT requires for offsets, lengths and memory: a page, or a logical block of the device.
const ALIGN: usize = 4096;

/// Reads a device without its page cache, and writes what was read to its place in a file. f2fs keeps its metadata elsewhere, and the
/// cache may hold old contents that an earlier reader left.
pub(super) struct Recording {
    device: File,
    to: File,
    /// The place of the device's first byte in the file.
    start: u64,
}

impl Recording {
    /// Opens the device; `to` receives what is read, from byte `start` on.
    ///
    /// # Errors
    /// Returns an error if it cannot be opened.
    pub fn open(device: &Path, to: File, start: u64) -> io::Result<Recording> {
        let device = File::options()
            .read(true)
            .custom_flags(rustix::fs::OFlags::DIRECT.bits().cast_signed())
            .open(device)?;
        Ok(Recording { device, to, start })
    }

    /// Reads one aligned piece. The device may end within the last one.
    fn read_at_most(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buf.len() {
            match self
                .device
                .read_at(&mut buf[filled..], offset + filled as u64)?
            {
                0 => break,
                n => filled += n,
            }
        }
        Ok(filled)
    }
}

impl ReadAt for Recording {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let skip = usize::try_from(offset % ALIGN as u64).unwrap_or(0);
        let len = (skip + buf.len()).next_multiple_of(ALIGN);
        let mut room = vec![0; len + ALIGN];
        let start = room.as_ptr().align_offset(ALIGN);
        let aligned = &mut room[start..start + len];
        let filled = self.read_at_most(aligned, offset - skip as u64)?;
        let wanted = aligned[..filled]
            .get(skip..skip + buf.len())
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buf.copy_from_slice(wanted);
        self.to.write_all_at(buf, self.start + offset)
    }
}
