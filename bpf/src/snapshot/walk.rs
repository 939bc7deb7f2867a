// SPDX-License-Identifier: MIT OR Apache-2.0
//! f2fs and FAT, which no tool saves: the blocks that the map is built from.

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

/// Saves what building the map reads of the device, or of all `members`, into the bundle in `bundle`. The filesystem is
/// written back before, if it is mounted.
///
/// # Errors
/// A device cannot be read or mapped, or the bundle cannot be written.
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
    // What is read counts, not the map: the analyser builds it again from the snapshot.
    fs::build(&Image::new(device.node(), size, joined), 0)?;
    pack(&raw, size, bundle)?;
    Ok(described(device, members, "walk"))
}
