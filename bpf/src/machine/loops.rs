// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loop devices whose backing files lie on a filesystem.

use std::fs;
use std::os::linux::fs::MetadataExt;
use std::path::Path;

use mostrace_bundle::manifest::Loop;
use rustix::fs::{major, minor};

/// Returns the loop devices on the filesystem with this `major:minor`. A loop device is left out if its backing file cannot be
/// found here by its name.
pub(crate) fn on(dev: &str) -> Vec<Loop> {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let mut loops: Vec<Loop> = devices
        .filter_map(|device| {
            let name = device.file_name().into_string().ok()?;
            let inode = inode_of(&device.path(), dev)?;
            Some(Loop { name, inode })
        })
        .collect();
    loops.sort_by(|a, b| a.name.cmp(&b.name));
    loops
}

/// Returns the inode of a block device's backing file, if it has one that lies on `dev`.
fn inode_of(device: &Path, dev: &str) -> Option<u64> {
    let path = fs::read_to_string(device.join("loop/backing_file")).ok()?;
    let file = fs::metadata(path.trim_end_matches('\n')).ok()?;
    let lies_on = format!("{}:{}", major(file.st_dev()), minor(file.st_dev()));
    (lies_on == dev).then(|| file.st_ino())
}
