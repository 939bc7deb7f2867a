// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mapped devices (dm: LVM, LUKS, Android's default-key): the places of their sectors on the disks below.

use mostrace_bundle::DeviceNumber;
use std::path::Path;

use mostrace_bundle::manifest::Mapping;

use crate::error::{Error, Result};
use crate::machine::device::Device;

mod ioctl;
mod table;

/// The most mapped devices that may lie on one another; more of them form a circle.
const DEPTH: usize = 16;

/// Returns true for a device of the device mapper.
pub fn is_mapped(device: &Device) -> bool {
    has_table(&device.sysfs)
}

fn has_table(sysfs: &Path) -> bool {
    sysfs.join("dm").is_dir()
}

/// Returns the places of a mapped device's sectors on disks that are not mapped, in the order of its sectors.
///
/// # Errors
/// Returns an error if a target scatters its sectors (the error names it), or if the kernel gives no table.
pub fn mapping(device: &Device) -> Result<Vec<Mapping>> {
    let runs = down(device, 0, device.info.sectors, DEPTH)?;
    let mut at = 0;
    Ok(runs
        .into_iter()
        .map(|run| {
            let start_sector = at;
            at += run.sectors;
            Mapping {
                start_sector,
                ..run
            }
        })
        .collect())
}

/// Returns the runs below `start..end` of a device.
fn down(device: &Device, start: u64, end: u64, depth: usize) -> Result<Vec<Mapping>> {
    let mut runs = Vec::new();
    let DeviceNumber { major, minor } = DeviceNumber::of(device.dev);
    for target in ioctl::table(major, minor)? {
        let from = target.start.max(start);
        let to = target.start.saturating_add(target.sectors).min(end);
        if from >= to {
            continue;
        }
        let unmappable = || Error::NotMappable {
            device: device.info.name.clone(),
            target: target.name.clone(),
        };
        let place = target.lower.as_ref().ok_or_else(unmappable)?;
        let lower = Device::by_number(&place.dev)?;
        let first = place.start.saturating_add(from - target.start);
        if is_mapped(&lower) && depth > 0 {
            let below = down(&lower, first, first.saturating_add(to - from), depth - 1)?;
            runs.extend(below.into_iter().map(|run| Mapping {
                target: format!("{} on {}", target.name, run.target),
                ..run
            }));
            continue;
        }
        runs.push(Mapping {
            start_sector: from,
            sectors: to - from,
            target: target.name.clone(),
            lower_start_sector: lower.info.start_sector.saturating_add(first),
            lower_dev: lower.info.dev,
            lower_name: lower.info.name,
            lower_disk_dev: lower.info.disk_dev,
        });
    }
    Ok(runs)
}

/// Returns the one device on which a mapped device lies: a partition or a disk, or the disk of several partitions.
///
/// # Errors
/// Returns an error if there are several disks.
pub fn lower(device: &Device, mapping: &[Mapping]) -> Result<Device> {
    let only = |of: fn(&Mapping) -> &String| {
        let mut all: Vec<_> = mapping.iter().map(of).collect();
        all.sort();
        all.dedup();
        match all[..] {
            [one] => Some(one.clone()),
            _ => None,
        }
    };
    let dev = only(|m| &m.lower_dev).or_else(|| only(|m| &m.lower_disk_dev));
    let Some(dev) = dev else {
        let mut disks: Vec<_> = mapping.iter().map(|m| m.lower_name.clone()).collect();
        disks.sort();
        disks.dedup();
        return Err(Error::SeveralDisks {
            device: device.info.path.clone(),
            disks: disks.join(", "),
        });
    };
    Device::by_number(&dev)
}

/// Returns the mapped devices that lie on a device or on its partitions, and those above them.
pub fn above(device: &Device) -> Vec<Device> {
    let numbers = device.numbers_above(has_table);
    let found = numbers.iter().map(|number| Device::by_number(number));
    found.filter_map(Result::ok).collect()
}
