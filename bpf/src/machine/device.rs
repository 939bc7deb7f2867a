// SPDX-License-Identifier: MIT OR Apache-2.0
//! The block device to trace, as sysfs describes it.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use mostrace_bundle::manifest;

use crate::error::{At, Error, Result, read_line};
use crate::machine::mountinfo;
use crate::machine::paths::{self, HiddenDisk};

/// A whole disk or a partition.
#[derive(Clone, Debug)]
pub struct Device {
    /// The device as the manifest describes it.
    pub info: manifest::Device,
    /// `/sys/class/block/NAME`, resolved.
    pub sysfs: PathBuf,
    /// The kernel's number of the device, major << 20 | minor.
    pub dev: u32,
    /// The same of the whole disk.
    pub disk_dev: u32,
    /// The disks whose requests are those of this one, with the same sectors: the paths of an NVMe namespace.
    pub(crate) paths: Vec<HiddenDisk>,
}

/// major << 20 | minor, as the kernel and blktrace keep it.
pub(super) fn kernel_dev(major: u32, minor: u32) -> u32 {
    major << 20 | minor
}

/// Parses sysfs' `major:minor`.
pub(super) fn parse_dev(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once(':')?;
    Some(kernel_dev(major.parse().ok()?, minor.parse().ok()?))
}

/// The kernel's number from a `stat` field.
pub(crate) fn dev_of_stat(dev: u64) -> u32 {
    kernel_dev(rustix::fs::major(dev), rustix::fs::minor(dev))
}

impl Device {
    /// Looks a device node up; or, of a folder or a file, the device that it is on.
    ///
    /// # Errors
    /// Missing, or not a block device and not on one.
    pub fn open(path: &Path) -> Result<Device> {
        let meta = fs::metadata(path).map_err(|source| Error::NoDevice {
            path: path.to_owned(),
            source,
        })?;
        let kind = meta.file_type();
        if kind.is_block_device() {
            return Device::look_up(meta.rdev(), Some(path));
        }
        if !kind.is_file() && !kind.is_dir() {
            return Err(Error::NotBlockDevice(path.to_owned()));
        }
        if !sysfs_link(meta.dev()).exists() {
            return Device::of_mount(path);
        }
        Device::look_up(meta.dev(), None)
    }

    /// That of a folder or file whose filesystem has a number of its own: btrfs says which device is mounted, an overlay which
    /// folder it writes to.
    fn of_mount(path: &Path) -> Result<Device> {
        let mounted = mountinfo::of(path);
        if let Some(mounted) = &mounted {
            let source = fs::metadata(&mounted.source).ok();
            let source = source.filter(|meta| meta.file_type().is_block_device());
            if let Some(source) = source.filter(|_| mounted.kind == "btrfs") {
                return Device::look_up(source.rdev(), None);
            }
            // That one lies on no overlay itself: the kernel refuses to write to such a one.
            if let Some(upper) = mounted.upper().filter(|upper| upper.exists())
                && mountinfo::of(&upper).is_some_and(|upper| upper.kind != "overlay")
            {
                return Device::open(&upper);
            }
        }
        Err(Error::NotOnDevice {
            path: path.to_owned(),
            filesystem: mounted.map_or("a filesystem".into(), |mounted| mounted.kind),
        })
    }

    /// Looks a device up by sysfs' `major:minor`.
    ///
    /// # Errors
    /// There is none.
    pub fn by_number(number: &str) -> Result<Device> {
        let malformed = || Error::malformed(number, "bad device number");
        let (major, minor) = number.split_once(':').ok_or_else(malformed)?;
        let number = |text: &str| text.parse().map_err(|_| malformed());
        Device::look_up(rustix::fs::makedev(number(major)?, number(minor)?), None)
    }

    /// By its number as `stat` has it, and its node, if that is known.
    fn look_up(rdev: u64, node: Option<&Path>) -> Result<Device> {
        let (major, minor) = (rustix::fs::major(rdev), rustix::fs::minor(rdev));
        let link = sysfs_link(rdev);
        let sysfs = fs::canonicalize(&link).at(&link)?;
        let partition = sysfs.join("partition").exists();
        let disk = disk_of(&sysfs);
        let disk_dev_text = read_line(disk.join("dev"))?;
        let disk_dev = parse_dev(&disk_dev_text)
            .ok_or_else(|| Error::malformed(disk.display(), "bad device number"))?;
        let queue = disk.join("queue");
        let number = |name: &str| {
            read_line(queue.join(name))
                .ok()
                .and_then(|t| t.parse::<u32>().ok())
        };
        let start = if partition {
            read_line(sysfs.join("start"))?
        } else {
            "0".into()
        };
        let size = read_line(sysfs.join("size"))?;
        let sectors = |text: &str| {
            text.parse::<u64>()
                .map_err(|e| Error::malformed(sysfs.display(), e))
        };
        let info = manifest::Device {
            path: match node {
                Some(node) => node.display().to_string(),
                None => node_of(&sysfs, rdev)?.display().to_string(),
            },
            name: name_of(&sysfs),
            dev: format!("{major}:{minor}"),
            disk: name_of(&disk),
            disk_dev: disk_dev_text,
            start_sector: sectors(&start)?,
            sectors: sectors(&size)?,
            logical_block_size: number("logical_block_size").unwrap_or(512),
            physical_block_size: number("physical_block_size").unwrap_or(512),
            scheduler: read_line(queue.join("scheduler"))
                .map(|s| active(&s))
                .unwrap_or_default(),
            rotational: number("rotational") == Some(1),
            write_cache: read_line(queue.join("write_cache")).unwrap_or_default(),
            fua: number("fua") == Some(1),
            max_sectors_kb: number("max_sectors_kb").unwrap_or_default(),
            nr_requests: number("nr_requests").unwrap_or_default(),
            backing_file: read_line(disk.join("loop/backing_file")).ok(),
            zone_sectors: read_line(queue.join("zoned"))
                .ok()
                .filter(|model| model != "none")
                .and_then(|_| number("chunk_sectors"))
                .filter(|&sectors| sectors > 0),
        };
        Ok(Device {
            info,
            sysfs,
            dev: kernel_dev(major, minor),
            disk_dev,
            paths: paths::of(&name_of(&disk)),
        })
    }

    /// Returns true if the device is a part of its disk.
    pub fn is_partition(&self) -> bool {
        self.dev != self.disk_dev
    }

    /// `/sys/block/DISK`, resolved.
    pub fn disk_sysfs(&self) -> PathBuf {
        match self.is_partition() {
            true => parent(&self.sysfs),
            false => self.sysfs.clone(),
        }
    }

    /// Returns true if there are requests for the device: its own, or those of its paths. The drivers of other disks (zram, brd,
    /// pmem, md, dm) take bios alone.
    pub fn has_requests(&self) -> bool {
        self.disk_sysfs().join("mq").is_dir() || !self.paths.is_empty()
    }

    /// The device node, for reading.
    pub fn node(&self) -> &Path {
        Path::new(&self.info.path)
    }

    /// Major and minor number.
    pub fn number(&self) -> (u32, u32) {
        (self.dev >> 20, self.dev & 0xf_ffff)
    }

    /// The nodes of its partitions.
    pub fn partitions(&self) -> Vec<PathBuf> {
        let node = |folder: PathBuf| {
            let dev = read_line(folder.join("dev")).ok()?;
            Some(PathBuf::from(Device::by_number(&dev).ok()?.info.path))
        };
        let mut nodes: Vec<_> = partitions_of(&self.sysfs).filter_map(node).collect();
        nodes.sort();
        nodes
    }

    /// Length in bytes.
    pub fn bytes(&self) -> u64 {
        self.info.sectors.saturating_mul(512)
    }

    /// First sector past the device on its disk.
    pub fn end_sector(&self) -> u64 {
        self.info.start_sector.saturating_add(self.info.sectors)
    }

    /// The devices that a mapped device (dm, md) is made of. Its bios become requests only there, so
    /// that is where entries are made.
    pub fn below(&self) -> Vec<String> {
        let Ok(slaves) = fs::read_dir(self.sysfs.join("slaves")) else {
            return Vec::new();
        };
        slaves
            .flatten()
            .map(|s| s.file_name().to_string_lossy().into_owned())
            .collect()
    }

    /// The disks that are mapped onto the device (dm, md), and those above them, major << 20 | minor.
    pub fn above(&self) -> Vec<u32> {
        let numbers = self.numbers_above(|_| true);
        numbers.iter().filter_map(|n| parse_dev(n)).collect()
    }

    /// The kernel's numbers of all that a filesystem on the device can be on: itself, its partitions, and what lies on
    /// them; and of filesystems on these that have a number of their own.
    pub fn filesystems(&self) -> Vec<u32> {
        let partitions = partitions_of(&self.sysfs);
        let numbers = partitions.filter_map(|p| parse_dev(&read_line(p.join("dev")).ok()?));
        let mut all: Vec<u32> = [self.dev].into_iter().chain(numbers).collect();
        all.extend(self.above());
        let own = mountinfo::all().into_iter().filter(|m| m.kind == "btrfs");
        for mounted in own {
            let source = fs::metadata(&mounted.source).map(|meta| dev_of_stat(meta.rdev()));
            let number = parse_dev(&mounted.dev);
            let is_here = source.is_ok_and(|source| all.contains(&source));
            all.extend(number.filter(|number| is_here && !all.contains(number)));
        }
        all
    }

    /// sysfs' `major:minor` of the disks that lie on the device, and of those above them, as far as `is_wanted` is true
    /// of their folders in sysfs. On a disk lie those of its partitions too.
    pub fn numbers_above(&self, is_wanted: impl Fn(&Path) -> bool) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![self.sysfs.clone()];
        while let Some(device) = open.pop() {
            open.extend(partitions_of(&device));
            for holder in folders(&device.join("holders")) {
                let Ok(number) = read_line(holder.join("dev")) else {
                    continue;
                };
                if is_wanted(&holder) && !found.contains(&number) {
                    found.push(number);
                    open.push(holder);
                }
            }
        }
        found
    }

    /// Returns true if a file of `st_dev` lies on the same disk.
    pub fn shares_disk_with(&self, st_dev: u64) -> bool {
        let Ok(sysfs) = fs::canonicalize(sysfs_link(st_dev)) else {
            return false;
        };
        let disk = disk_of(&sysfs);
        read_line(disk.join("dev")).ok().and_then(|t| parse_dev(&t)) == Some(self.disk_dev)
    }
}

/// The folder of sysfs for the device of this number.
fn sysfs_link(rdev: u64) -> PathBuf {
    let (major, minor) = (rustix::fs::major(rdev), rustix::fs::minor(rdev));
    PathBuf::from(format!("/sys/dev/block/{major}:{minor}"))
}

/// The node of a device, in its place on Linux or on Android.
fn node_of(sysfs: &Path, rdev: u64) -> Result<PathBuf> {
    let uevent = fs::read_to_string(sysfs.join("uevent")).unwrap_or_default();
    let name = uevent.lines().find_map(|l| l.strip_prefix("DEVNAME="));
    let name = name.map_or_else(|| name_of(sysfs), str::to_owned);
    let places = ["/dev", "/dev/block"].map(|dir| Path::new(dir).join(&name));
    let is_it = |path: &&PathBuf| {
        let meta = path.metadata();
        meta.is_ok_and(|m| m.file_type().is_block_device() && m.rdev() == rdev)
    };
    match places.iter().find(is_it) {
        Some(node) => Ok(node.clone()),
        None => Err(Error::NoDevice {
            path: places[0].clone(),
            source: std::io::ErrorKind::NotFound.into(),
        }),
    }
}

/// The folders in sysfs of the partitions of the device that has the folder `disk`.
fn partitions_of(disk: &Path) -> impl Iterator<Item = PathBuf> {
    let folders = folders(disk).into_iter();
    folders.filter(|folder| folder.join("partition").exists())
}

/// The entries of a folder of sysfs; none if it cannot be read.
fn folders(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).map_or(Vec::new(), |entries| {
        entries.flatten().map(|e| e.path()).collect()
    })
}

fn parent(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}

/// The folder in sysfs of the whole disk.
fn disk_of(sysfs: &Path) -> PathBuf {
    match sysfs.join("partition").exists() {
        true => parent(sysfs),
        false => sysfs.to_owned(),
    }
}

fn name_of(sysfs: &Path) -> String {
    sysfs
        .file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// `mq-deadline` of `none [mq-deadline] bfq`.
fn active(schedulers: &str) -> String {
    let between = |s: &str| Some(s.split_once('[')?.1.split_once(']')?.0.to_owned());
    between(schedulers).unwrap_or_else(|| schedulers.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_active_scheduler_stands_in_brackets() {
        assert_eq!(active("none [mq-deadline] bfq"), "mq-deadline");
        assert_eq!(active("none"), "none");
    }

    #[test]
    fn what_is_not_a_block_device() {
        let e = Device::open(Path::new("/dev/null")).unwrap_err();
        assert_eq!(e.to_string(), "/dev/null: not a block device");
        let e = Device::open(Path::new("/proc/version")).unwrap_err();
        assert_eq!(
            e.to_string(),
            "/proc/version: on proc, which has no block device of its own: name one"
        );
        let e = Device::open(Path::new("/no/such")).unwrap_err();
        assert!(e.to_string().starts_with("/no/such: No such file"), "{e}");
    }
}
