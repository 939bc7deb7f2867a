// SPDX-License-Identifier: MIT OR Apache-2.0
//! Saves the metadata of f2fs and FAT, for which there is no tool: the blocks from which the map is built.

use std::fs::File;
use std::path::Path;

use mostrace_bundle::Folder;
use mostrace_bundle::manifest::Snapshot;
use mostrace_map::fs::{self, Image, Joined};

use super::pack::pack;
use super::recording::Recording;
use super::{described, scratch, size};
use crate::error::{At, Result};
use crate::machine::device::Device;
use crate::machine::members::Member;

/// Saves the blocks that building the map reads from the device, or from all `members`, to the bundle in `bundle`. If the filesystem
/// is mounted, it is first written back.
///
/// # Errors
/// Returns an error if a device cannot be read or mapped, or if the bundle cannot be written.
pub fn save(
    device: &Device,
    members: &[Member],
    mount: Option<&Path>,
    bundle: &Folder,
) -> Result<Snapshot> {
    if let Some(mount) = mount {
        let folder = File::open(mount).at(mount)?;
        rustix::fs::syncfs(&folder).at(mount)?;
    }
    let size = size(device, members);
    let raw = scratch(bundle)?;
    raw.set_len(size).at(bundle.path())?;
    let recorded = |device: &Device, start: u64| {
        let copy = raw.try_clone().at(bundle.path())?;
        Recording::open(device.node(), copy, start).at(device.node())
    };
    let mut joined = Joined::default();
    match members {
        [] => joined = joined.with(size, recorded(device, 0)?),
        _ => {
            for member in members {
                let start = member.start.saturating_mul(512);
                let reader = recorded(&member.device, start)?;
                joined = joined.with(member.sectors.saturating_mul(512), reader);
            }
        }
    }
    // Only the reads matter, not the map: the analyser builds it again from the snapshot.
    fs::build(&Image::new(device.node(), size, joined), 0)?;
    pack(&raw, size, bundle)?;
    Ok(described(device, members, "walk"))
}
