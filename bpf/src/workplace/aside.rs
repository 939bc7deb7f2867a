// SPDX-License-Identifier: MIT OR Apache-2.0
//! The place for a recording that nobody keeps: not on the measured disk, so that it is not part of the measurement.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use mostrace_bundle::temporary::TempFolder;

use crate::error::Result;
use crate::machine::device::Device;

/// The bytes that must be free in memory for a recording; a recording of some minutes takes less.
const ROOM: u64 = 1 << 30;

/// Makes a temporary folder. It is in memory if the usual place for temporary files is on the disk of `within` and there is room.
///
/// # Errors
/// Returns an error if no folder can be made.
pub fn aside(within: Option<&Path>) -> Result<TempFolder> {
    // What cannot be recorded is reported later.
    let disk = within.and_then(|within| Device::open(within).ok());
    if let Some(disk) = disk.filter(|disk| lies_on(&std::env::temp_dir(), disk)) {
        let other = TempFolder::in_memory()?;
        if !lies_on(other.path(), &disk) && room(other.path()) >= ROOM {
            return Ok(other);
        }
    }
    Ok(TempFolder::new()?)
}

fn lies_on(path: &Path, disk: &Device) -> bool {
    let metadata = fs::metadata(path);
    metadata.is_ok_and(|metadata| disk.shares_disk_with(metadata.dev()))
}

/// Returns the number of free bytes.
fn room(path: &Path) -> u64 {
    rustix::fs::statvfs(path).map_or(0, |of| of.f_bavail.saturating_mul(of.f_frsize))
}
