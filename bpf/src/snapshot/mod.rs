// SPDX-License-Identifier: MIT OR Apache-2.0
//! Saves the filesystem's metadata after tracing has stopped.

use std::fs::File;
use std::path::Path;

use mostrace_bundle::Folder;
use mostrace_bundle::manifest::{Filesystem, Snapshot};

use crate::error::{At, Error, Result};
use crate::machine::device::Device;
use crate::machine::filesystem::is_ext;

mod ext4;
mod pack;
mod recording;
mod walk;

/// Saves the metadata of `filesystem` into the bundle in `folder`.
///
/// # Errors
/// Returns an error if this kind cannot be saved, if the device cannot be read, or if the bundle cannot be written.
pub(crate) fn take(device: &Device, filesystem: &Filesystem, folder: &Folder) -> Result<Snapshot> {
    let mount = filesystem.mount_point.as_ref().map(Path::new);
    match filesystem.kind.as_str() {
        kind if is_ext(kind) => ext4::save(device, folder),
        "f2fs" | "vfat" | "msdos" => walk::save(device, mount, folder),
        other => Err(Error::NoSnapshotOf(other.into())),
    }
}

/// Makes a file for the raw image on the bundle's disk. It has no name, so it vanishes with the recorder, in whatever way that
/// ends.
fn scratch(folder: &Folder) -> Result<File> {
    tempfile::tempfile_in(folder.handle()).at(folder.path())
}

fn described(device: &Device, method: &str) -> Snapshot {
    Snapshot {
        method: method.into(),
        size: device.bytes(),
        start_sector: device.info.start_sector,
    }
}
