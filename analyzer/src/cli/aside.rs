// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a recording lies that nobody keeps: beside the measured disk, so that it is not in the measurement itself.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use mostrace_bundle::Error;
use mostrace_bundle::temporary::TempFolder;
use mostrace_capture::Device;

/// What has to be free in memory for a recording: one of some minutes takes less.
const ROOM: u64 = 1 << 30;

/// A temporary folder; one in memory, if that for temporary files is on the disk of `within` and there is room.
///
/// # Errors
/// There can be none.
pub fn folder(within: Option<&Path>) -> Result<TempFolder, Error> {
    let usual = TempFolder::new()?;
    // What cannot be recorded is told later.
    let Some(disk) = within.and_then(|within| Device::open(within).ok()) else {
        return Ok(usual);
    };
    if !lies_on(usual.path(), &disk) {
        return Ok(usual);
    }
    let other = TempFolder::in_memory()?;
    let is_better = !lies_on(other.path(), &disk) && room(other.path()) >= ROOM;
    Ok(if is_better { other } else { usual })
}

fn lies_on(path: &Path, disk: &Device) -> bool {
    let metadata = fs::metadata(path);
    metadata.is_ok_and(|metadata| disk.shares_disk_with(metadata.dev()))
}

/// Bytes that are free.
fn room(path: &Path) -> u64 {
    rustix::fs::statvfs(path).map_or(0, |of| of.f_bavail.saturating_mul(of.f_frsize))
}
