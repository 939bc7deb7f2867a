// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a drive's own counters, through an ioctl (NVMe) or from sysfs (eMMC, UFS).
//!
//! A drive is asked only for what it says that it has, because some drives count a request for anything else as an error.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use mostrace_bundle::Health;
use mostrace_bundle::health::Gauges;

use crate::error::read_line;
use crate::machine::dev::dev_of_stat;
use crate::machine::device::Device;

mod nvme;
mod sysfs;

/// The most disks that may lie on one another (loop devices, dm, md); more of them form a circle.
const DEPTH: usize = 16;

/// A disk that has counters of its own, and their source.
#[derive(Clone, Debug)]
pub struct Drive {
    disk: String,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Nvme(Box<nvme::Drive>),
    Emmc(sysfs::Folder),
    Ufs(sysfs::Folder),
}

impl Source {
    fn name(&self) -> &'static str {
        match self {
            Source::Nvme(_) => "nvme",
            Source::Emmc(_) => "emmc",
            Source::Ufs(_) => "ufs",
        }
    }
}

impl Drive {
    /// Returns the drive on which a device lies; None if there is not exactly one, or if it has no counters.
    pub fn below(device: &Device) -> Option<Drive> {
        let disk = disk_below(device, DEPTH)?;
        let sysfs = disk.disk_sysfs();
        let source = None
            .or_else(|| nvme::Drive::find(&disk).map(|drive| Source::Nvme(Box::new(drive))))
            .or_else(|| sysfs::emmc(&sysfs).map(Source::Emmc))
            .or_else(|| sysfs::ufs(&sysfs).map(Source::Ufs))?;
        Some(Drive {
            disk: disk.info.disk,
            source,
        })
    }

    /// Reads the counters; None if the drive has none or does not answer.
    pub fn read(&self) -> Option<Gauges> {
        let gauges = match &self.source {
            Source::Nvme(drive) => drive.read(),
            Source::Emmc(folder) | Source::Ufs(folder) => folder.read(),
        };
        Some(gauges).filter(|gauges| !gauges.is_empty())
    }

    /// Begins the health of a recording: reads the counters for the first time.
    pub fn begin(&self) -> Option<Health> {
        Some(Health {
            disk: self.disk.clone(),
            source: self.source.name().into(),
            before: self.read()?,
            after: None,
        })
    }
}

/// Returns the only disk at the bottom of a device; None if there are several.
fn disk_below(device: &Device, depth: usize) -> Option<Device> {
    let depth = depth.checked_sub(1)?;
    let disk = device.disk_sysfs();
    if let Ok(file) = read_line(disk.join("loop/backing_file")) {
        return disk_below(&of_file(Path::new(&file))?, depth);
    }
    let mut found: Option<Device> = None;
    for name in device.below() {
        let dev = read_line(Path::new("/sys/class/block").join(name).join("dev")).ok()?;
        let below = disk_below(&Device::by_number(&dev).ok()?, depth)?;
        if found.is_some_and(|one| one.disk_dev != below.disk_dev) {
            return None;
        }
        found = Some(below);
    }
    match found {
        None => Device::by_number(&device.info.disk_dev).ok(),
        below => below,
    }
}

/// Returns the device on which a loop device's file lies. The file may itself be a device.
fn of_file(file: &Path) -> Option<Device> {
    let device = Device::open(file).ok()?;
    let meta = fs::metadata(file).ok()?;
    let is_it = [meta.dev(), meta.rdev()]
        .map(dev_of_stat)
        .contains(&device.dev);
    // btrfs and overlays have numbers of their own.
    (is_it || meta.is_file()).then_some(device)
}
