// SPDX-License-Identifier: MIT OR Apache-2.0
//! Saves the metadata of ext4, ext3 and ext2 with `e2image -r`; without e2image (on a phone), our own walker finds it.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::process;

use mostrace_bundle::Folder;
use mostrace_bundle::manifest::Snapshot;
use mostrace_map::fs::{Image, Joined, ext4};

use super::pack::{pack, pack_ranges};
use super::{described, scratch, size};
use crate::error::{At, Error, Result};
use crate::machine::device::Device;
use crate::machine::members::Member;
use crate::machine::tool;

const TOOL: &str = "e2image";

/// Saves the filesystem's metadata into the bundle in `folder`; if its journal is another one of its `members`, all of that too.
///
/// # Errors
/// Returns an error if a device cannot be read, if e2image fails, or if the bundle cannot be written.
pub fn save(device: &Device, members: &[Member], folder: &Folder) -> Result<Snapshot> {
    let method = match (members, tool::find(TOOL)) {
        ([], Ok(_)) => {
            by_e2image(device, folder)?;
            TOOL
        }
        ([], Err(_)) => {
            by_walk(&Image::open(device.node())?, &[], folder)?;
            "walk"
        }
        (_, _) => {
            let image = joined(device, members)?;
            let journal = size_of_first(members)..size(device, members);
            by_walk(&image, &[journal], folder)?;
            "walk"
        }
    };
    Ok(described(device, members, method))
}

/// Returns the devices as one image, read through their page caches as e2image does.
fn joined(device: &Device, members: &[Member]) -> Result<Image> {
    let mut joined = Joined::default();
    for member in members {
        let node = member.device.node();
        let file = File::open(node).at(node)?;
        joined = joined.with(member.sectors.saturating_mul(512), file);
    }
    Ok(Image::new(device.node(), size(device, members), joined))
}

fn size_of_first(members: &[Member]) -> u64 {
    let first = members.first();
    first.map_or(0, |first| first.sectors.saturating_mul(512))
}

/// Saves the metadata from which the map is built, read through the device's page cache as e2image does, and these ranges behind it.
fn by_walk(image: &Image, behind: &[Range<u64>], folder: &Folder) -> Result<()> {
    let found = ext4::metadata(image)?;
    for notice in found.notices {
        log::warn!("snapshot: {notice}");
    }
    let ranges = [&found.ranges[..], behind].concat();
    pack_ranges(image, &ranges, folder)
}

/// Runs e2image. It reads the device through its page cache, where a mounted ext4 keeps its metadata buffers, so the extents are
/// the live ones. -f is needed because the filesystem is mounted.
fn by_e2image(device: &Device, folder: &Folder) -> Result<()> {
    let raw = scratch(folder)?;
    let out = tool::command(TOOL)?
        .arg("-rf")
        .arg(device.node())
        .arg(format!("/proc/{}/fd/{}", process::id(), raw.as_raw_fd()))
        .output()
        .map_err(|e| failed(e.to_string()))?;
    if !out.status.success() {
        let text = String::from_utf8_lossy(&out.stderr);
        let line = text
            .lines()
            .filter(|l| !l.starts_with("e2image "))
            .find(|l| !l.trim().is_empty());
        let why = line.unwrap_or("failed without a message").trim();
        return Err(failed(why.to_owned()));
    }
    pack(&raw, device.bytes(), folder)
}

fn failed(why: String) -> Error {
    Error::ToolFailed { tool: TOOL, why }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use mostrace_bundle::{layout, sparse};

    use super::*;

    #[test]
    fn the_walk_saves_what_e2image_saves() {
        let dir = tempfile::tempdir().unwrap();
        let disk = dir.path().join("disk");
        let made = Command::new("mke2fs")
            .args(["-q", "-t", "ext4", "-d", "/usr/include/linux"])
            .arg(&disk)
            .arg("64M")
            .env("PATH", tool::PATH)
            .status();
        assert!(made.expect("mke2fs of e2fsprogs").success());
        let folder = Folder::open(dir.path()).unwrap();
        by_walk(&Image::open(&disk).unwrap(), &[], &folder).unwrap();
        let packed = dir.path().join(layout::SNAPSHOT);
        let back = dir.path().join("back");
        let file = File::create_new(&back).unwrap();
        let limits = sparse::Limits::new(1 << 30, packed.metadata().unwrap().len());
        sparse::restore(File::open(&packed).unwrap(), &packed, &file, limits).unwrap();
        let map = |image| ext4::build(image, 0).unwrap();
        assert_eq!(map(&back).extents(), map(&disk).extents());
        assert!(packed.metadata().unwrap().len() < 1 << 20);
    }
}
