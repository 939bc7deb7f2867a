// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device or file that requests are replayed on.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{ErrorKind, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::error::{Error, Result};

/// A device or file that nobody else uses.
#[derive(Debug)]
pub struct BlockTarget {
    pub(super) file: File,
    pub(super) path: PathBuf,
    pub(super) is_device: bool,
}

impl BlockTarget {
    /// Opens a block device that nobody has mounted or otherwise claimed, or a regular file that is no loop device's
    /// backing file.
    ///
    /// # Errors
    /// Returns an error if it is something else, is in use, or ends before `end`, the end of the requests in bytes.
    pub fn open(path: &Path, end: u64) -> Result<BlockTarget> {
        let refused = |why: String| Error::Refused {
            path: path.to_owned(),
            why,
        };
        let found = fs::metadata(path).map_err(Error::io(path))?;
        let is_device = found.file_type().is_block_device();
        if !is_device && !found.is_file() {
            return Err(refused("is neither a block device nor a file".into()));
        }
        if let Some(device) = loop_device_of(&found) {
            return Err(refused(format!("is in use as {device}")));
        }
        // For a block device, O_EXCL without O_CREAT fails if it is mounted, swapped to, or part of another device.
        let flags = OFlags::DIRECT | OFlags::EXCL;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path);
        let mut file = file.map_err(|e| match e.kind() {
            ErrorKind::ResourceBusy => refused("is mounted, or in use by another device".into()),
            _ => Error::io(path)(e),
        })?;
        let size = file.seek(SeekFrom::End(0)).map_err(Error::io(path))?;
        if size < end {
            return Err(refused(format!(
                "has {size} bytes, but the requests reach up to byte {end}"
            )));
        }
        Ok(BlockTarget {
            file,
            path: path.to_owned(),
            is_device,
        })
    }
}

/// Returns the loop device whose backing file this is.
fn loop_device_of(file: &Metadata) -> Option<String> {
    let devices = fs::read_dir("/sys/block").ok()?.flatten();
    let mut names = devices.filter_map(|device| {
        let backing = fs::read_to_string(device.path().join("loop/backing_file")).ok()?;
        let backing = fs::metadata(backing.trim_end_matches('\n')).ok()?;
        let same = (backing.dev(), backing.ino()) == (file.dev(), file.ino());
        same.then(|| device.file_name().to_string_lossy().into_owned())
    });
    names.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_large_enough_and_no_folder_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let why = |path: &Path, end| BlockTarget::open(path, end).unwrap_err().to_string();
        assert!(why(dir.path(), 0).ends_with(": is neither a block device nor a file"));
        let file = dir.path().join("file");
        fs::write(&file, [0; 4096]).unwrap();
        assert!(
            why(&file, 4097).ends_with(": has 4096 bytes, but the requests reach up to byte 4097")
        );
        assert!(why(&dir.path().join("none"), 0).contains("No such file"));
    }
}
