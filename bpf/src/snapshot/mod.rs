// SPDX-License-Identifier: MIT OR Apache-2.0
//! Saves the filesystem's metadata after tracing has stopped.

use std::fs::File;
use std::path::Path;

use mostrace_bundle::Folder;
use mostrace_bundle::manifest::{Filesystem, Snapshot};

use crate::error::{At, Error, Result};
use crate::machine::device::Device;
use crate::machine::filesystem::is_ext;
use crate::machine::members::Member;

mod ext4;
mod pack;
mod recording;
mod walk;

/// Saves the metadata of `filesystem`, which begins on `device`, into the bundle in `folder`. `members` has all of its devices if it
/// lies on several; what is saved counts then through all of them.
///
/// # Errors
/// Returns an error if this kind cannot be saved, if a device cannot be read, or if the bundle cannot be written.
pub(crate) fn take(
    device: &Device,
    members: &[Member],
    filesystem: &Filesystem,
    folder: &Folder,
) -> Result<Snapshot> {
    let mount = filesystem.mount_point.as_ref().map(Path::new);
    match filesystem.kind.as_str() {
        kind if is_ext(kind) => ext4::save(device, members, folder),
        "f2fs" | "vfat" | "msdos" => walk::save(device, members, mount, folder),
        other => Err(Error::NoSnapshotOf(other.into())),
    }
}

/// Makes a file for the raw image on the bundle's disk. It has no name, so it vanishes with the recorder, in whatever way that
/// ends.
fn scratch(folder: &Folder) -> Result<File> {
    tempfile::tempfile_in(folder.handle()).at(folder.path())
}

fn described(device: &Device, members: &[Member], method: &str) -> Snapshot {
    Snapshot {
        method: method.into(),
        size: size(device, members),
        start_sector: match members {
            [] => device.info.start_sector,
            _ => 0,
        },
    }
}

/// Returns the length of the filesystem's devices in bytes.
fn size(device: &Device, members: &[Member]) -> u64 {
    let end = |last: &Member| last.start.saturating_add(last.sectors).saturating_mul(512);
    members.last().map_or(device.bytes(), end)
}
