// SPDX-License-Identifier: MIT OR Apache-2.0
//! The block device to trace, as described by sysfs.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use mostrace_bundle::{DeviceNumber, manifest};

use crate::error::{At, Error, Result, read_line};
use crate::machine::dev::{dev_of_stat, number_of_stat, parse_dev};
use crate::machine::mountinfo::{self, Mounted};
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
    /// The kernel's number of the whole disk, major << 20 | minor.
    pub disk_dev: u32,
    /// The disks that carry out this one's requests at the same sectors: the paths of an NVMe namespace.
    pub(crate) paths: Vec<HiddenDisk>,
}

impl Device {
    /// Returns true if the driver has requests: `inflight` holds the number of reads and writes.
    pub(crate) fn is_busy(&self) -> bool {
        let counts = read_line(self.sysfs.join("inflight")).unwrap_or_default();
        counts.split_ascii_whitespace().any(|count| count != "0")
    }

    /// Looks up a device by its node, or the device that holds a folder or file.
    ///
    /// # Errors
    /// Returns an error if the path is missing, or if it is neither a block device nor on one.
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

    /// Looks up the device of a folder or file whose filesystem has a number of its own: for btrfs, the mounted device; for an
    /// overlay, the device of the folder to which it writes.
    fn of_mount(path: &Path) -> Result<Device> {
        let mounted = mountinfo::of(path);
        if let Some(mounted) = &mounted {
            if let Some(source) = source(mounted) {
                return Device::look_up(stat_number(DeviceNumber::of(source)), None);
            }
            // That folder is not on an overlay itself: the kernel refuses to write to such a folder.
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

    /// Looks up a device by sysfs' `major:minor`.
    ///
    /// # Errors
    /// Returns an error if there is no such device.
    pub fn by_number(number: &str) -> Result<Device> {
        let malformed = || Error::malformed(number, "bad device number");
        let number = DeviceNumber::parse(number).ok_or_else(malformed)?;
        Device::look_up(stat_number(number), None)
    }

    /// Looks up a device by its number in the form of `stat`, and by its node if that is known.
    fn look_up(rdev: u64, node: Option<&Path>) -> Result<Device> {
        let dev = number_of_stat(rdev);
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
            dev: dev.to_string(),
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
            dev: dev.dev(),
            disk_dev,
            paths: paths::of(&name_of(&disk)),
        })
    }

    /// Returns true if the device is a partition of its disk.
    pub fn is_partition(&self) -> bool {
        self.dev != self.disk_dev
    }

    /// Returns `/sys/block/DISK`, resolved.
    pub fn disk_sysfs(&self) -> PathBuf {
        match self.is_partition() {
            true => parent(&self.sysfs),
            false => self.sysfs.clone(),
        }
    }

    /// Returns true if requests are made for the device, either its own or those of its paths. The drivers of other disks (zram,
    /// brd, pmem, md, dm) only take bios.
    pub fn has_requests(&self) -> bool {
        makes_requests(&self.disk_sysfs()) || !self.paths.is_empty()
    }

    /// Returns the device node, which is opened for reading.
    pub fn node(&self) -> &Path {
        Path::new(&self.info.path)
    }

    /// Returns the nodes of the device's partitions.
    pub fn partitions(&self) -> Vec<PathBuf> {
        let node = |folder: PathBuf| {
            let dev = read_line(folder.join("dev")).ok()?;
            Some(PathBuf::from(Device::by_number(&dev).ok()?.info.path))
        };
        let mut nodes: Vec<_> = partitions_of(&self.sysfs).filter_map(node).collect();
        nodes.sort();
        nodes
    }

    /// Returns the length in bytes.
    pub fn bytes(&self) -> u64 {
        self.info.sectors.saturating_mul(512)
    }

    /// Returns the first sector behind the device on its disk.
    pub fn end_sector(&self) -> u64 {
        self.info.start_sector.saturating_add(self.info.sectors)
    }

    /// Returns the devices that make up a mapped device (dm, md). Bios become requests only there, so entries are made there.
    pub fn below(&self) -> Vec<String> {
        let Ok(slaves) = fs::read_dir(self.sysfs.join("slaves")) else {
            return Vec::new();
        };
        slaves
            .flatten()
            .map(|s| s.file_name().to_string_lossy().into_owned())
            .collect()
    }

    /// Returns the disks that are mapped onto the device (dm, md), and those above them, as major << 20 | minor.
    pub fn above(&self) -> Vec<u32> {
        let numbers = self.numbers_above(|_| true);
        numbers.iter().filter_map(|n| parse_dev(n)).collect()
    }

    /// Returns the kernel's numbers of everything on which a filesystem on the device can lie: the device, its partitions, and what
    /// is mapped onto them; and the numbers of filesystems on these that have one of their own.
    pub fn filesystems(&self) -> Vec<u32> {
        let partitions = partitions_of(&self.sysfs);
        let numbers = partitions.filter_map(|p| parse_dev(&read_line(p.join("dev")).ok()?));
        let mut all: Vec<u32> = [self.dev].into_iter().chain(numbers).collect();
        all.extend(self.above());
        for mounted in mountinfo::all() {
            let number = parse_dev(&mounted.dev);
            let is_here = source(&mounted).is_some_and(|source| all.contains(&source));
            all.extend(number.filter(|number| is_here && !all.contains(number)));
        }
        all
    }

    /// Returns sysfs' `major:minor` of the disks that lie on the device, and of those above them, if `is_wanted` is true for their
    /// folders in sysfs. What lies on a disk's partitions lies on the disk too.
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

    /// Returns true if a file with this `st_dev` lies on the same disk.
    pub fn shares_disk_with(&self, st_dev: u64) -> bool {
        let Ok(sysfs) = fs::canonicalize(sysfs_link(st_dev)) else {
            return false;
        };
        let disk = disk_of(&sysfs);
        read_line(disk.join("dev")).ok().and_then(|t| parse_dev(&t)) == Some(self.disk_dev)
    }
}

/// Returns true if the driver of the disk with this folder in sysfs has a queue of requests. Up to 4.20 there are queues without
/// `mq`: these always have a scheduler, and disks that take bios have none.
pub(crate) fn makes_requests(disk: &Path) -> bool {
    let schedulers = read_line(disk.join("queue/scheduler"));
    disk.join("mq").is_dir() || schedulers.is_ok_and(|schedulers| schedulers.contains('['))
}

/// Returns the number of the device from which a btrfs was mounted, as major << 20 | minor; None for any other filesystem. The
/// kernel has the device's path only, and a path outside /dev may not answer.
pub(super) fn source(mounted: &Mounted) -> Option<u32> {
    let is_node = mounted.kind == "btrfs" && mounted.source.starts_with("/dev");
    let meta = fs::metadata(is_node.then_some(&mounted.source)?).ok()?;
    let is_block = meta.file_type().is_block_device();
    is_block.then(|| dev_of_stat(meta.rdev()))
}

/// Returns the folder in sysfs of the device with this number.
fn sysfs_link(rdev: u64) -> PathBuf {
    PathBuf::from(format!("/sys/dev/block/{}", number_of_stat(rdev)))
}

/// Returns a device's number in the form of `stat`.
fn stat_number(number: DeviceNumber) -> u64 {
    rustix::fs::makedev(number.major, number.minor)
}

/// Returns the node of a device, which Linux and Android keep in different places.
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

/// Returns the folders in sysfs of the partitions of the disk whose folder is `disk`.
fn partitions_of(disk: &Path) -> impl Iterator<Item = PathBuf> {
    let folders = folders(disk).into_iter();
    folders.filter(|folder| folder.join("partition").exists())
}

/// Returns the entries of a folder in sysfs; none if it cannot be read.
fn folders(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).map_or(Vec::new(), |entries| {
        entries.flatten().map(|e| e.path()).collect()
    })
}

fn parent(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}

/// Returns the folder in sysfs of the whole disk.
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

/// Returns the scheduler in brackets: `mq-deadline` from `none [mq-deadline] bfq`.
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
    fn an_old_queue_of_requests_has_a_scheduler() {
        let dir = tempfile::tempdir().unwrap();
        let disk = |name: &str, scheduler: Option<&str>, has_mq: bool| {
            let disk = dir.path().join(name);
            fs::create_dir_all(disk.join("queue")).unwrap();
            if let Some(text) = scheduler {
                fs::write(disk.join("queue/scheduler"), text).unwrap();
            }
            if has_mq {
                fs::create_dir(disk.join("mq")).unwrap();
            }
            makes_requests(&disk)
        };
        assert!(disk("sda", Some("noop deadline [cfq] \n"), false));
        assert!(disk("mmcblk0", Some("[noop] \n"), false));
        assert!(disk("loop0", Some("none\n"), true));
        assert!(!disk("zram0", Some("none\n"), false));
        assert!(!disk("dm-0", None, false));
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
