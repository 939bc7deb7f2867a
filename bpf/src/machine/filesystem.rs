// SPDX-License-Identifier: MIT OR Apache-2.0
//! The filesystem on a device, and the folder at which it is mounted.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use mostrace_bundle::manifest::Filesystem;

use crate::error::{At, Result};
use crate::machine::dev::parse_dev;
use crate::machine::device::{self, Device};
use crate::machine::members;
use crate::machine::mountinfo::{self, Mounted};
use crate::machine::tool;

/// Finds the filesystem on the device by its mount, or otherwise by the device's first blocks; None if nothing is recognised.
///
/// # Errors
/// Returns an error if the device cannot be read.
pub fn find(device: &Device) -> Result<Option<Filesystem>> {
    if let Some(mounted) = mounted(device) {
        return Ok(Some(mounted));
    }
    let kind = recognise(device)?;
    Ok(kind.map(|kind| Filesystem {
        kind: kind.into(),
        features: features(kind, device),
        ..Filesystem::default()
    }))
}

/// Returns the kinds of the filesystems on the device and on what is mapped onto it: of those that are mounted, otherwise as the
/// first blocks say.
pub fn kinds(device: &Device) -> Vec<String> {
    let numbers = members::filesystems(device);
    let is_here =
        |mounted: &Mounted| parse_dev(&mounted.dev).is_some_and(|dev| numbers.contains(&dev));
    let mounts = mountinfo::all().into_iter().filter(is_here);
    let mut kinds: Vec<String> = mounts.map(|mounted| mounted.kind).collect();
    if kinds.is_empty() {
        kinds.extend(recognise(device).ok().flatten().map(str::to_owned));
    }
    kinds.sort();
    kinds.dedup();
    kinds
}

/// Returns true if, by its superblock, each of the filesystem's blocks has pages of its own, as on f2fs and on an ext4 whose blocks
/// have a page's size.
pub fn has_whole_pages(device: &Device) -> bool {
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(0);
    let Ok(head) = head(device.node()) else {
        return false;
    };
    match kind_of(&head) {
        Some("ext4") => 1024u64.checked_shl(head[1048].into()) == Some(page),
        Some("f2fs") => page == 4096,
        _ => false,
    }
}

/// Returns the first mount of the device to which a path leads. If other mounts cover all of them, there is no mount point.
pub fn mounted(device: &Device) -> Option<Filesystem> {
    let first = |mounts: Vec<Mounted>| mounts.into_iter().find(|one| is_of(one, device));
    let reached = first(mountinfo::reachable());
    let mount_point = reached.as_ref().map(|one| shown(&one.point));
    let found = reached.or_else(|| first(mountinfo::all()))?;
    Some(Filesystem {
        features: features(&found.kind, device),
        kind: found.kind,
        mount_point,
        mount_options: Some(found.options),
        ..Filesystem::default()
    })
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Returns the filesystem's features, from dumpe2fs, or from f2fs itself while it is mounted.
fn features(kind: &str, device: &Device) -> Option<Vec<String>> {
    let words = |text: &str| {
        let words = text.split([' ', ',', '\n']);
        words.filter(|w| !w.is_empty()).map(str::to_owned).collect()
    };
    if is_ext(kind) {
        let out = tool::command("dumpe2fs")
            .ok()?
            .arg("-h")
            .arg(device.node())
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&out.stdout);
        let line = text
            .lines()
            .find_map(|l| l.strip_prefix("Filesystem features:"))?;
        return Some(words(line));
    }
    let f2fs = Path::new("/sys/fs/f2fs").join(&device.info.name);
    let text = fs::read_to_string(f2fs.join("features")).ok()?;
    Some(words(&text))
}

/// Returns true if the kernel has this kind of filesystem now, and with it its tracepoints: it may load a module for one that it lacks.
pub(crate) fn is_there(kind: &str) -> bool {
    let all = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    all.split_ascii_whitespace().any(|word| word == kind)
}

/// Returns true for a filesystem of the ext family, which e2fsprogs knows.
pub fn is_ext(kind: &str) -> bool {
    ["ext4", "ext3", "ext2"].contains(&kind)
}

/// Returns true if the mount is one of the device: by the filesystem's number, or by what was mounted, because btrfs has a number of
/// its own.
fn is_of(mounted: &Mounted, device: &Device) -> bool {
    mounted.dev == device.info.dev || is_source(mounted, device)
}

/// Returns true for a mounted btrfs that has the device as a source, possibly beside others.
fn is_source(mounted: &Mounted, device: &Device) -> bool {
    let Some(source) = device::source(mounted) else {
        return false;
    };
    let name = &device.info.name;
    source == device.dev
        || btrfs_devices()
            .iter()
            .any(|devices| devices.contains(name) && devices.contains(&name_of(&mounted.source)))
}

/// Returns the kernel's name of a device, given its node.
fn name_of(node: &Path) -> String {
    let node = fs::canonicalize(node).unwrap_or_default();
    let name = node.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns the kernel's names of the devices of each mounted btrfs.
fn btrfs_devices() -> Vec<Vec<String>> {
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.collect()
    };
    let all = Path::new("/sys/fs/btrfs");
    let each = names(all).into_iter();
    each.map(|one| names(&all.join(one).join("devices")))
        .collect()
}

/// Returns the other devices of a btrfs that lies on this one; none for any other filesystem.
pub fn other_devices(device: &Device) -> Vec<String> {
    let name = &device.info.name;
    let mut of_one = btrfs_devices().into_iter().find(|all| all.contains(name));
    of_one
        .iter_mut()
        .for_each(|all| all.retain(|one| one != name));
    of_one.unwrap_or_default()
}

/// Recognises a filesystem by the magic number of its superblock.
fn recognise(device: &Device) -> Result<Option<&'static str>> {
    let kind = kind_of(&head(device.node())?);
    Ok(kind.or(btrfs_number(device.node()).map(|_| "btrfs")))
}

/// The places of btrfs's first superblock, of the filesystem's number in it, and, two words behind that, of the magic number.
const BTRFS: u64 = 64 << 10;
const BTRFS_FSID: usize = 32;
const BTRFS_MAGIC: usize = 64;

/// Returns the number of a btrfs; None if the device holds none.
fn btrfs_number(node: &Path) -> Option<Vec<u8>> {
    let mut superblock = [0; 72];
    let file = File::open(node).ok()?;
    file.read_exact_at(&mut superblock, BTRFS).ok()?;
    let number = &superblock[BTRFS_FSID..BTRFS_FSID + 16];
    (superblock[BTRFS_MAGIC..] == *b"_BHRfS_M").then(|| number.to_vec())
}

/// Returns the number that distinguishes the filesystem on a device from others, and that was set when it was made: its UUID, or
/// its serial number. None if no such number is known.
pub fn number(node: &Path) -> Option<Vec<u8>> {
    let head = head(node).ok()?;
    let Some(kind) = kind_of(&head) else {
        return btrfs_number(node);
    };
    let (at, len) = match kind {
        "xfs" => (32, 16),
        "ext4" => (1024 + 104, 16),
        "f2fs" => (1024 + 108, 16),
        "exfat" => (100, 4),
        // The boot record of FAT32 is longer.
        _ if head[82..].starts_with(b"FAT32") => (67, 4),
        _ => (39, 4),
    };
    Some(head[at..at + len].to_vec())
}

/// Reads the first bytes; behind the end of a short device they are zeros.
fn head(node: &Path) -> Result<[u8; 4096]> {
    let file = File::open(node).at(node)?;
    let mut head = [0u8; 4096];
    let mut filled = 0;
    while filled < head.len() {
        match file.read_at(&mut head[filled..], filled as u64).at(node)? {
            0 => break,
            n => filled += n,
        }
    }
    Ok(head)
}

fn kind_of(head: &[u8; 4096]) -> Option<&'static str> {
    let at = |offset: usize, magic: &[u8]| head[offset..].starts_with(magic);
    if at(1080, &[0x53, 0xef]) {
        // The kernel mounts ext2 and ext3 with the same code.
        Some("ext4")
    } else if at(1024, &[0x10, 0x20, 0xf5, 0xf2]) {
        Some("f2fs")
    } else if at(0, b"XFSB") {
        Some("xfs")
    } else if at(3, b"EXFAT   ") {
        Some("exfat")
    } else if at(510, &[0x55, 0xaa]) && (at(54, b"FAT") || at(82, b"FAT32")) {
        Some("vfat")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn superblocks_are_told_by_their_magic() {
        let mut head = [0; 4096];
        assert_eq!(kind_of(&head), None);
        head[1080..1082].copy_from_slice(&[0x53, 0xef]);
        assert_eq!(kind_of(&head), Some("ext4"));
    }
}
