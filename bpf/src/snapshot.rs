// SPDX-License-Identifier: MIT OR Apache-2.0
//! The filesystem's metadata, saved when tracing has stopped.

use std::fs::File;
use std::io::{self, BufWriter};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use mostrace_bundle::layout;
use mostrace_bundle::manifest::Snapshot;
use mostrace_bundle::sparse::SparseWriter;
use rustix::fs::{SeekFrom, seek};

use crate::device::Device;
use crate::error::{At, Error, Result};

const CHUNK: u64 = 1 << 20;
/// What O_DIRECT wants offsets, lengths and memory to be multiples of, at most: a page, or a
/// logical block of the device.
const ALIGN: usize = 4096;

/// Reads the filesystem on a device so that all its metadata is read; the analyser's map builder.
/// The text says why it could not.
pub type Walk = fn(Recorder) -> std::result::Result<(), String>;

/// A device whose reads are written down. They go past the page cache of the device: f2fs keeps
/// its metadata elsewhere, and what an earlier reader left there may be old.
pub struct Recorder {
    path: PathBuf,
    device: File,
    tee: File,
    size: u64,
}

impl Recorder {
    /// The device.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Length of the device, bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Fills `buf` from byte `offset` on.
    ///
    /// # Errors
    /// The device cannot be read, or what was read cannot be written down.
    pub fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
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
        self.tee.write_all_at(buf, offset)
    }

    /// The device may end within the last aligned piece.
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

/// Saves what `walk` reads of the device into the bundle in `dir`. The filesystem is written back
/// before, if it is mounted.
///
/// # Errors
/// The device cannot be read or walked, or the bundle cannot be written.
pub fn walked(device: &Device, mount: Option<&Path>, walk: Walk, dir: &Path) -> Result<Snapshot> {
    if let Some(mount) = mount {
        let folder = File::open(mount).at(mount)?;
        rustix::fs::syncfs(&folder).at(mount)?;
    }
    let node = device.node();
    let raw = scratch(dir)?;
    let size = device.info.sectors.saturating_mul(512);
    raw.as_file().set_len(size).at(dir)?;
    let recorder = Recorder {
        path: node.to_owned(),
        device: File::options()
            .read(true)
            .custom_flags(rustix::fs::OFlags::DIRECT.bits().cast_signed())
            .open(node)
            .at(node)?,
        tee: raw.reopen().at(dir)?,
        size,
    };
    walk(recorder).map_err(Error::unfit)?;
    pack(raw.as_file(), size, &dir.join(layout::SNAPSHOT))?;
    Ok(Snapshot {
        method: "walk".into(),
        size,
        start_sector: device.info.start_sector,
    })
}

fn scratch(dir: &Path) -> Result<tempfile::NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".snapshot-")
        .tempfile_in(dir)
        .at(dir)
}

/// Saves the metadata of an ext4 filesystem through `e2image -r` into the bundle in `dir`.
///
/// e2image reads the device through its page cache, where a mounted ext4 keeps its
/// metadata buffers, so the extents are the live ones. -f because it is mounted.
///
/// # Errors
/// e2image is missing or fails, or the bundle cannot be written.
pub fn ext4(device: &Device, dir: &Path) -> Result<Snapshot> {
    let raw = scratch(dir)?;
    let out = Command::new("e2image")
        .arg("-rf")
        .arg(device.node())
        .arg(raw.path())
        .output()
        .map_err(|e| Error::unfit(format!("e2image: {e} (package e2fsprogs)")))?;
    if !out.status.success() {
        let text = String::from_utf8_lossy(&out.stderr);
        let line = text
            .lines()
            .filter(|l| !l.starts_with("e2image "))
            .find(|l| !l.trim().is_empty());
        return Err(Error::unfit(format!(
            "e2image: {}",
            line.unwrap_or("failed without a message").trim()
        )));
    }
    let size = device.info.sectors.saturating_mul(512);
    pack(raw.as_file(), size, &dir.join(layout::SNAPSHOT))?;
    Ok(Snapshot {
        method: "e2image".into(),
        size,
        start_sector: device.info.start_sector,
    })
}

/// Packs the data of a sparse file, hole by hole.
fn pack(raw: &File, size: u64, to: &Path) -> Result<()> {
    let out = BufWriter::new(File::create(to).at(to)?);
    let mut sparse = SparseWriter::new(out, size).at(to)?;
    let mut buf = vec![0; CHUNK as usize];
    let mut at = 0;
    while let Ok(start) = seek(raw, SeekFrom::Data(at)) {
        let end = seek(raw, SeekFrom::Hole(start)).at(to)?;
        at = start;
        while at < end {
            let want = (end - at).min(CHUNK) as usize;
            raw.read_exact_at(&mut buf[..want], at).at(to)?;
            sparse.push(at, &buf[..want]).at(to)?;
            at += want as u64;
        }
    }
    let file = sparse
        .finish()
        .at(to)?
        .into_inner()
        .map_err(std::io::IntoInnerError::into_error)
        .at(to)?;
    file.sync_all().at(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_sparse_file_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let raw = tempfile::tempfile().unwrap();
        raw.set_len(10 << 20).unwrap();
        raw.write_all_at(b"head", 0).unwrap();
        raw.write_all_at(&[5; 3 << 20], 4 << 20).unwrap();
        let to = dir.path().join("x");
        pack(&raw, 10 << 20, &to).unwrap();
        let mut back = tempfile::NamedTempFile::new().unwrap();
        mostrace_bundle::sparse::restore(
            File::open(&to).unwrap(),
            &to,
            back.as_file_mut(),
            1 << 30,
        )
        .unwrap();
        let (mut a, mut b) = (vec![0; 10 << 20], Vec::new());
        raw.read_exact_at(&mut a, 0).unwrap();
        back.reopen().unwrap().read_to_end(&mut b).unwrap();
        assert!(a == b);
    }
}
