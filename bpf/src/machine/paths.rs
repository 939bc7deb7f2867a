// SPDX-License-Identifier: MIT OR Apache-2.0
//! The paths of an NVMe namespace that several controllers may reach (multipath).
//!
//! The kernel shows such a namespace as one disk, `nvme0n1`. This disk takes bios and passes each on to the hidden disk of a path,
//! `nvme0c1n1`, which has the requests. A hidden disk has neither a node nor a number in sysfs, but /proc/diskstats shows its
//! number. Source: drivers/nvme/host/multipath.c (nvme_mpath_set_disk_name, nvme_ns_head_submit_bio).

use std::fs;

use mostrace_bundle::DeviceNumber;

/// The hidden disk of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HiddenDisk {
    /// Its name in /sys/block, for example `nvme0c1n1`.
    pub name: String,
    /// Its number, major << 20 | minor.
    pub dev: u32,
}

/// Returns the hidden disks to which the disk with this name passes bios on; most disks have none.
pub(super) fn of(disk: &str) -> Vec<HiddenDisk> {
    let Some(namespace) = Namespace::of_head(disk) else {
        return Vec::new();
    };
    let disks = fs::read_to_string("/proc/diskstats").unwrap_or_default();
    of_namespace(namespace, &disks)
}

/// A namespace of a subsystem, identified by the numbers in its disks' names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Namespace<'a> {
    subsystem: &'a str,
    namespace: &'a str,
}

impl<'a> Namespace<'a> {
    /// Parses `nvme0n1`.
    fn of_head(disk: &'a str) -> Option<Namespace<'a>> {
        let (subsystem, namespace) = disk.strip_prefix("nvme")?.split_once('n')?;
        (is_number(subsystem) && is_number(namespace)).then_some(Namespace {
            subsystem,
            namespace,
        })
    }

    /// Parses `nvme0c1n1`.
    fn of_path(disk: &'a str) -> Option<Namespace<'a>> {
        let (subsystem, rest) = disk.strip_prefix("nvme")?.split_once('c')?;
        let (controller, namespace) = rest.split_once('n')?;
        let are_numbers = [subsystem, controller, namespace]
            .into_iter()
            .all(is_number);
        are_numbers.then_some(Namespace {
            subsystem,
            namespace,
        })
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Searches the text of /proc/diskstats for the paths of a namespace.
fn of_namespace(namespace: Namespace<'_>, disks: &str) -> Vec<HiddenDisk> {
    let path = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let (major, minor, name) = (fields.next()?, fields.next()?, fields.next()?);
        let is_path = Namespace::of_path(name) == Some(namespace);
        let (major, minor) = (major.parse().ok()?, minor.parse().ok()?);
        let dev = DeviceNumber { major, minor }.dev();
        let name = name.to_owned();
        is_path.then_some(HiddenDisk { name, dev })
    };
    disks.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_has_the_hidden_disks_of_its_paths() {
        let disks = "\
 259       0 nvme0c0n1 6 0 144 4 0 0 0 0 0 4 4 0 0 0 0 0 0
 259       2 nvme0c1n1 6 0 144 4 0 0 0 0 0 4 4 0 0 0 0 0 0
 259       1 nvme0n1 100 0 4352 41 0 0 0 0 0 8 41 0 0 0 0 0 0
 259       4 nvme0c0n2 6 0 144 4 0 0 0 0 0 4 4 0 0 0 0 0 0
 259       5 nvme1c0n1 6 0 144 4 0 0 0 0 0 4 4 0 0 0 0 0 0
 259       6 nvme0n1p1 6 0 144 4 0 0 0 0 0 4 4 0 0 0 0 0 0
";
        let path = |name: &str, minor: u32| HiddenDisk {
            name: name.to_owned(),
            dev: 259 << 20 | minor,
        };
        let paths = |disk| Namespace::of_head(disk).map(|n| of_namespace(n, disks));
        let both = vec![path("nvme0c0n1", 0), path("nvme0c1n1", 2)];
        assert_eq!(paths("nvme0n1"), Some(both));
        assert_eq!(paths("nvme2n1"), Some(vec![]));
        assert_eq!(paths("nvme0n1p1"), None);
        assert_eq!(paths("sda"), None);
        assert_eq!(paths("nvme"), None);
    }
}
