// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loop devices whose backing files lie on a filesystem.

use std::ffi::OsStr;
use std::fs;
use std::os::linux::fs::MetadataExt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use mostrace_bundle::manifest::Loop;

use crate::machine::dev::number_of_stat;
use crate::machine::mountinfo::{self, Mounted};

/// Returns the loop devices on the filesystem with this `major:minor`. A loop device is left out if its backing file cannot be
/// found here by its name. Files on other filesystems, which may not answer, are not touched.
pub(crate) fn on(dev: &str) -> Vec<Loop> {
    let mounts = mountinfo::reachable();
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let mut loops: Vec<Loop> = devices
        .filter_map(|device| {
            let name = device.file_name().into_string().ok()?;
            let inode = inode_of(&device.path(), dev, &mounts)?;
            Some(Loop { name, inode })
        })
        .collect();
    loops.sort_by(|a, b| a.name.cmp(&b.name));
    loops
}

/// Returns the inode of a block device's backing file, if it has one that lies on `dev`.
fn inode_of(device: &Path, dev: &str, mounts: &[Mounted]) -> Option<u64> {
    let path = fs::read(device.join("loop/backing_file")).ok()?;
    let path = Path::new(OsStr::from_bytes(path.strip_suffix(b"\n")?));
    mountinfo::holding(mounts, path).filter(|mounted| mounted.dev == dev)?;
    let file = fs::metadata(path).ok()?;
    let lies_on = number_of_stat(file.st_dev());
    (lies_on.to_string() == dev).then(|| file.st_ino())
}
