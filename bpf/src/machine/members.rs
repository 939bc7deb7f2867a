// SPDX-License-Identifier: MIT OR Apache-2.0
//! The devices of a filesystem that lies on several: an f2fs with a list of them, or an ext4 whose journal has one of its own.

use mostrace_bundle::DeviceNumber;
use std::fs::File;

use mostrace_bundle::manifest::Mapping;
use mostrace_map::fs::{ExternalJournal, Image, PartDevice, ext4, parts};

use crate::error::{At, Error, Result};
use crate::machine::dev::parse_dev;
use crate::machine::device::Device;
use crate::machine::mountinfo;

/// A device, and its place in the filesystem.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub device: Device,
    /// Its first sector, counted in the filesystem.
    pub start: u64,
    /// The number of its sectors that the filesystem has.
    pub sectors: u64,
    /// What it is to the filesystem.
    pub what: &'static str,
}

/// Returns the devices of the filesystem that begins on `first`, in the order of its blocks; none if that is the only one.
///
/// # Errors
/// Returns an error if another device that the superblock names is not there.
pub(crate) fn of(first: &Device) -> Result<Vec<Member>> {
    // What cannot be read, or has no sound superblock, names no devices.
    let parts = image_of(first).ok().and_then(|image| parts(&image).ok());
    let parts = parts.unwrap_or_default();
    if parts.len() < 2 {
        return Ok(Vec::new());
    }
    let mut members: Vec<Member> = Vec::new();
    for part in parts {
        let (device, what) = match &part.device {
            PartDevice::First => (first.clone(), "the first device"),
            PartDevice::Path(path) => (Device::open(path)?, "a further device"),
            PartDevice::Journal(journal) => (journal_of(journal)?, "the journal"),
        };
        let sectors = part.bytes.map_or(device.info.sectors, |bytes| bytes / 512);
        if sectors > device.info.sectors {
            let name = &device.info.path;
            return Err(Error::malformed(name, "it is shorter than its filesystem"));
        }
        let start = members
            .last()
            .map_or(0, |last| last.start.saturating_add(last.sectors));
        members.push(Member {
            device,
            start,
            sectors,
            what,
        });
    }
    Ok(members)
}

/// Returns a device as an image. Nothing of it is dropped from the page cache.
fn image_of(device: &Device) -> Result<Image> {
    let file = File::open(device.node()).at(device.node())?;
    Ok(Image::new(device.node(), device.bytes(), file))
}

/// Finds the device of a journal: the one with the number that it had at the last mount, if that is still made for it.
fn journal_of(journal: &ExternalJournal) -> Result<Device> {
    let (major, minor) = journal.dev;
    let number = DeviceNumber { major, minor }.to_string();
    let device = Device::by_number(&number)?;
    match ext4::journal_uuid(&image_of(&device)?) == Some(journal.uuid) {
        true => Ok(device),
        false => Err(Error::malformed(number, "not the filesystem's journal")),
    }
}

/// Returns the devices of the mounted filesystem that has a part on `device`, but begins on another one; none if there is no such
/// filesystem.
pub(crate) fn reaching(device: &Device) -> Vec<Member> {
    let lists = mounted_on_several().map(|(_, members)| members);
    let is_here = |member: &Member| member.device.dev == device.dev;
    let mut lists = lists.filter(|members| members.iter().skip(1).any(is_here));
    lists.next().unwrap_or_default()
}

/// Returns the kernel's numbers of what can be on a device, by [`Device::filesystems`], and of mounted filesystems that begin elsewhere
/// but reach it.
pub(crate) fn filesystems(device: &Device) -> Vec<u32> {
    let mut all = device.filesystems();
    let reaching: Vec<u32> = mounted_on_several()
        .filter(|(_, members)| members.iter().any(|m| all.contains(&m.device.dev)))
        .map(|(number, _)| number)
        .collect();
    for number in reaching {
        if !all.contains(&number) {
            all.push(number);
        }
    }
    all
}

/// Returns the kernel's numbers of the other disks that mounted filesystems on the device lie on.
pub(crate) fn beside(device: &Device) -> Vec<u32> {
    let here = device.filesystems();
    let lists = mounted_on_several().map(|(_, members)| members);
    let reaching = lists.filter(|members| members.iter().any(|m| here.contains(&m.device.dev)));
    let mut disks: Vec<u32> = reaching.flatten().map(|m| m.device.disk_dev).collect();
    disks.retain(|&disk| disk != device.disk_dev);
    disks.sort_unstable();
    disks.dedup();
    disks
}

/// Returns the mounted filesystems that lie on several devices: the number of each and its devices.
fn mounted_on_several() -> impl Iterator<Item = (u32, Vec<Member>)> {
    let mut mounts = mountinfo::all();
    mounts.retain(|m| ["ext4", "ext3", "f2fs"].contains(&m.kind.as_str()));
    mounts.sort_by(|a, b| a.dev.cmp(&b.dev));
    mounts.dedup_by(|a, b| a.dev == b.dev);
    mounts.into_iter().filter_map(|mounted| {
        let first = Device::by_number(&mounted.dev).ok()?;
        let members = of(&first).ok().filter(|members| !members.is_empty())?;
        Some((parse_dev(&mounted.dev)?, members))
    })
}

/// Returns the places of a filesystem's sectors on the disks of its devices.
pub(crate) fn mapping(members: &[Member]) -> Vec<Mapping> {
    let run = |member: &Member| {
        let info = &member.device.info;
        Mapping {
            start_sector: member.start,
            sectors: member.sectors,
            target: member.what.into(),
            lower_dev: info.dev.clone(),
            lower_name: info.name.clone(),
            lower_disk_dev: info.disk_dev.clone(),
            lower_start_sector: info.start_sector,
        }
    };
    members.iter().map(run).collect()
}
