// SPDX-License-Identifier: MIT OR Apache-2.0
//! Saves the metadata of f2fs and FAT, for which there is no tool: the blocks from which the map is built.

use std::fs::File;
use std::path::Path;

use mostrace_bundle::Folder;
use mostrace_bundle::manifest::Snapshot;
use mostrace_map::fs::{self, Image};

use super::pack::pack;
use super::recording::Recording;
use super::{described, scratch};
use crate::error::{At, Result};
use crate::machine::device::Device;

/// Saves the blocks that building the map reads from the device to the bundle in `bundle`. If the filesystem is mounted, it is
/// first written back.
///
/// # Errors
/// Returns an error if the device cannot be read or mapped, or if the bundle cannot be written.
pub fn save(device: &Device, mount: Option<&Path>, bundle: &Folder) -> Result<Snapshot> {
    if let Some(mount) = mount {
        let folder = File::open(mount).at(mount)?;
        rustix::fs::syncfs(&folder).at(mount)?;
    }
    let (node, size) = (device.node(), device.bytes());
    let raw = scratch(bundle)?;
    raw.set_len(size).at(bundle.path())?;
    let copy = raw.try_clone().at(bundle.path())?;
    let recording = Recording::open(node, copy).at(node)?;
    // Only the reads matter, not the map: the analyser builds it again from the snapshot.
    fs::build(&Image::new(node, size, recording), 0)?;
    pack(&raw, size, bundle)?;
    Ok(described(device, "walk"))
}
