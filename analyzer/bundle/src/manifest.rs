// SPDX-License-Identifier: MIT OR Apache-2.0
//! `manifest.json`: what was captured, where and how, and what was lost.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::counters::{Counters, Totals};
use crate::device_number::DeviceNumber;
use crate::health::Health;

/// The version that this crate writes, and the newest that it reads.
pub const SCHEMA: u32 = 2;

/// The whole of `manifest.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this format.
    pub schema: u32,
    /// Name and version of the program that wrote the bundle.
    pub tool: String,
    /// The user's name for the recording (`--label`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The state of the capture: complete, or still running or killed.
    pub state: State,
    /// The machine's kernel.
    pub kernel: Kernel,
    /// The traced block device.
    pub device: Device,
    /// The filesystem on it, if one was recognised.
    pub filesystem: Option<Filesystem>,
    /// If the filesystem lies on a mapped device (dm) above the traced one, or on several devices: the places of its
    /// sectors, in their order. The snapshot then counts in sectors of the mapped device, or through all devices.
    /// Otherwise empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mapping: Vec<Mapping>,
    /// If the recording was cut (`--segment`): the number of this piece and what it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<Segment>,
    /// The clocks at the start of the capture, or of its segment.
    pub clock: Clock,
    /// The sources of events and entries.
    pub sources: Sources,
    /// Records lost, by stage; 0 means counted and none lost.
    pub losses: BTreeMap<String, u64>,
    /// Records kept, by kind.
    pub counts: BTreeMap<String, u64>,
    /// Disturbances of the tracing by others while it ran, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interference: Vec<String>,
    /// The comparison with the kernel's own counters; None if the capture was not stopped in order, and in bundles
    /// older than this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<Counters>,
    /// The kernel's totals for the device when tracing began and when it ended; None if `counters` are not compared, in
    /// anonymised bundles, and in bundles older than this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totals: Option<Totals>,
    /// The counters of the disk itself; None if it has none, if there are several disks below, in anonymised bundles, and in
    /// bundles older than this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
    /// Loop devices whose backing files lie on the traced filesystem. What their worker threads write is written for
    /// these devices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<Loop>,
    /// The filesystem's functions that began handles; `handle.entries` refers to them by index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<String>,
    /// The comparison of the tables of causes with the copies in the journal; None if there are no such tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causes: Option<Causes>,
    /// Sizes in bytes of the bundle's other files when the capture was complete, by name; empty before that, and in
    /// bundles older than this field.
    #[serde(default)]
    pub files: BTreeMap<String, u64>,
    /// The traced command.
    pub command: Option<Command>,
    /// The amount of data that the workload reports to have stored.
    pub payload: Option<Payload>,
    /// The saved filesystem metadata, taken at the end of the capture.
    pub snapshot: Option<Snapshot>,
    /// Remarks for the reader, for example on parts that were left out.
    pub notes: Vec<String>,
    /// The sources that were tried before those in use, and why each was passed over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<String>,
}

impl Manifest {
    /// Returns when the recording began by the wall clock, ns since 1970; None if it is not known.
    #[must_use]
    pub fn begin_unix_ns(&self) -> Option<u64> {
        Some(self.clock.start_unix_ns).filter(|&ns| ns != 0)
    }

    /// Returns the device number of the filesystem in the snapshot, major << 20 | minor, as in `s_dev` of file entries.
    /// None without a snapshot, or if the number cannot be parsed.
    #[must_use]
    pub fn filesystem_dev(&self) -> Option<u32> {
        self.snapshot.as_ref()?;
        let mapped = self.filesystem.as_ref().and_then(|f| f.dev.as_ref());
        DeviceNumber::parse(mapped.unwrap_or(&self.device.dev)).map(DeviceNumber::dev)
    }
}

/// A loop device, and its backing file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loop {
    /// Kernel name, for example `loop0`.
    pub name: String,
    /// Inode number of its backing file on the traced filesystem.
    pub inode: u64,
}

/// A piece of a recording that was cut by time or size; it can be read on its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Its place among the segments, counted from 1.
    pub number: u32,
    /// True if the recording ended with this segment. False while it records, and if the recorder was killed.
    pub last: bool,
    /// The byte offset in each file, by name, at which this segment's own records begin. The records ahead of it repeat
    /// those of the segment before: events and entries of requests that were in flight at the cut. None of them is a
    /// completion.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own_from: BTreeMap<String, u64>,
    /// The number of requests that were issued before this segment's end and are repeated in the next one.
    pub under_way: u64,
}

/// The state of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The recorder is running, or was killed.
    #[default]
    Recording,
    /// The recorder was stopped in order.
    Complete,
}

/// The machine's kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// `uname -m`.
    pub machine: String,
    /// Page size, bytes.
    pub page_size: u32,
    /// Number of possible CPUs.
    pub cpus: u32,
}

/// The traced block device. Sectors have 512 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// The path given to `record`.
    pub path: String,
    /// Kernel name, for example `loop0` or `sda1`.
    pub name: String,
    /// major:minor of `name`.
    pub dev: String,
    /// Kernel name of the whole disk.
    pub disk: String,
    /// major:minor of the whole disk.
    pub disk_dev: String,
    /// First sector of the device on the disk; 0 for a whole disk.
    pub start_sector: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// `queue/logical_block_size`, bytes.
    pub logical_block_size: u32,
    /// `queue/physical_block_size`, bytes.
    pub physical_block_size: u32,
    /// The active scheduler in `queue/scheduler`.
    pub scheduler: String,
    /// `queue/rotational`.
    pub rotational: bool,
    /// `queue/write_cache`.
    pub write_cache: String,
    /// `queue/fua`.
    pub fua: bool,
    /// `queue/max_sectors_kb`.
    pub max_sectors_kb: u32,
    /// `queue/nr_requests`.
    pub nr_requests: u32,
    /// `loop/backing_file`; None if it is not a loop device.
    pub backing_file: Option<String>,
    /// Length of a zone in sectors (`queue/chunk_sectors`); None if the disk has no zones (`queue/zoned`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone_sectors: Option<u32>,
}

/// The filesystem on the device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filesystem {
    /// Type as in `/proc/mounts` or the superblock: `ext4`, `f2fs`, `vfat`.
    pub kind: String,
    /// Mount point; None if it was not mounted.
    pub mount_point: Option<String>,
    /// Mount options as in `/proc/mounts`.
    pub mount_options: Option<String>,
    /// Features chosen when the filesystem was made, by the names that its tools use; None if they are not known, as
    /// for FAT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Vec<String>>,
    /// Kernel name of the mapped device that holds the filesystem, or of the first of several devices that do; None if
    /// the traced device itself does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// major:minor of that device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<String>,
}

/// A run of sectors of a mapped device (dm), or of a filesystem on several devices, and the disk that it lies on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    /// First sector on the mapped device, or in the filesystem.
    pub start_sector: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// Type of the device-mapper target, for example `linear` or `crypt`; of several stacked ones the uppermost first. Of a
    /// filesystem on several devices, what the device is to it, for example `the journal`.
    pub target: String,
    /// major:minor of the partition or disk below.
    pub lower_dev: String,
    /// Kernel name of the partition or disk below.
    pub lower_name: String,
    /// major:minor of the whole disk below.
    pub lower_disk_dev: String,
    /// First sector on the whole disk below.
    pub lower_start_sector: u64,
}

/// The clocks: events and entries carry CLOCK_MONOTONIC, which this ties to the calendar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// CLOCK_MONOTONIC at the start, ns.
    pub start_mono_ns: u64,
    /// CLOCK_REALTIME at the same moment, ns since 1970.
    pub start_unix_ns: u64,
    /// CLOCK_MONOTONIC when tracing stopped, ns; 0 if it did not stop in order.
    pub stop_mono_ns: u64,
}

/// The sources of events and entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    /// The source of block events: `bpf`, `tracefs` or `blktrace`; in older bundles also `ftrace`.
    pub events: String,
    /// The source of entries: `bpf`, `kernel`, `tracefs` or `none`.
    pub entries: String,
    /// The files whose names are recorded: `temp`, `all` or a glob.
    pub files: String,
    /// The source of handles, dirtied blocks and system calls: `bpf` or `none`.
    #[serde(default)]
    pub causes: String,
}

/// Comparison of the blocks that handles dirtied with the copies in the journal. The sums leave out copies of
/// transactions that began before the recording, and dirtied blocks of transactions whose commit the recording did not
/// see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Causes {
    /// Number of transactions that are compared: those of which the recording has the first handle and a copy.
    pub transactions: u64,
    /// Number of their copies.
    pub copies: u64,
    /// Number of blocks that their handles dirtied, as the kernel counts them.
    pub dirtied: u64,
    /// Number of copies of blocks for which a handle is known.
    pub named: u64,
}

impl Causes {
    /// Returns the field-wise sum of both.
    #[must_use]
    pub fn plus(self, other: Causes) -> Causes {
        Causes {
            transactions: self.transactions.saturating_add(other.transactions),
            copies: self.copies.saturating_add(other.copies),
            dirtied: self.dirtied.saturating_add(other.dirtied),
            named: self.named.saturating_add(other.named),
        }
    }
}

impl fmt::Display for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Causes {
            transactions,
            copies,
            dirtied,
            named,
        } = self;
        write!(
            f,
            "{transactions} whole transactions: {copies} copies in the journal, {dirtied} blocks dirtied, a handle \
             named for {named}"
        )
    }
}

/// The traced command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Exit status, or 128 plus the number of the signal that ended it.
    pub exit_status: Option<i32>,
    /// Its process id. None if the recorder does not know the id in the machine's initial pid namespace, and in bundles
    /// older than this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// True if the command had the filesystem to itself: one that was made for it and that nobody else saw. None in
    /// bundles older than this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<bool>,
    /// The part of the current folder that was copied to that filesystem before. None if nothing was, and in bundles older than this
    /// field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied: Option<Copied>,
}

/// The files that a command found on the filesystem that was made for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copied {
    /// Their number, without folders.
    pub files: u64,
    /// The sum of their lengths.
    pub bytes: u64,
}

/// The amount of data that a workload reports to have stored. `record` passes the file to write it to as
/// `$MOSTRACE_PAYLOAD`. Several workloads append to that file and are added up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Payload {
    /// Name of the workload, for example `sqlite`; of several workloads each name once, for example `sqlite, file`.
    pub workload: String,
    /// Bytes of the values that the application asked to be stored.
    pub payload_bytes: u64,
    /// Bytes passed to write(), pwrite() and the like.
    pub file_bytes: u64,
    /// Number of committed transactions, or of operations of a workload on files; if there are both, the transactions
    /// alone.
    pub transactions: u64,
    /// Wall time of the measured part, ns; of several workloads the sum.
    pub elapsed_ns: u64,
    /// Settings by name; of several workloads those that are equal in all.
    pub settings: BTreeMap<String, String>,
}

/// Workloads that count operations on files.
const OF_FILES: [&str; 3] = ["file", "names", "mobigen"];

impl Payload {
    /// Returns true if `transactions` counts operations on files instead of transactions.
    #[must_use]
    pub fn counts_operations(&self) -> bool {
        self.workloads().all(|name| OF_FILES.contains(&name))
    }

    /// Adds up this payload and another of the same recording.
    #[must_use]
    pub fn and(mut self, other: &Payload) -> Payload {
        self.transactions = match (self.counts_operations(), other.counts_operations()) {
            (false, true) => self.transactions,
            (true, false) => other.transactions,
            (_, _) => self.transactions.saturating_add(other.transactions),
        };
        let others = other.workloads().filter(|&name| !self.has(name));
        let all: Vec<&str> = self.workloads().chain(others).collect();
        self.workload = all.join(SEPARATOR);
        for (sum, more) in [
            (&mut self.payload_bytes, other.payload_bytes),
            (&mut self.file_bytes, other.file_bytes),
            (&mut self.elapsed_ns, other.elapsed_ns),
        ] {
            *sum = sum.saturating_add(more);
        }
        let is_theirs = |name: &String, value: &mut String| other.settings.get(name) == Some(value);
        self.settings.retain(is_theirs);
        self
    }

    fn workloads(&self) -> impl Iterator<Item = &str> {
        self.workload.split(SEPARATOR)
    }

    fn has(&self, workload: &str) -> bool {
        self.workloads().any(|name| name == workload)
    }
}

/// The separator between names of workloads.
const SEPARATOR: &str = ", ";

/// The saved metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The method: `e2image`, or `walk` for saving the blocks that the map builder reads (f2fs, FAT, and ext4 where
    /// there is no e2image).
    pub method: String,
    /// Size of the imaged device, bytes.
    pub size: u64,
    /// First sector of the filesystem on the disk.
    pub start_sector: u64,
}

/// The environment variable that names the file to which a workload writes its [`Payload`] as JSON.
pub const PAYLOAD_ENV: &str = "MOSTRACE_PAYLOAD";

/// The beginning of a line in which a recorder tells its progress to the program that started it.
pub const PROGRESS: &str = "progress: ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_added_up() {
        let of = |workload: &str, transactions: u64, settings: [(&str, &str); 2]| Payload {
            workload: workload.into(),
            payload_bytes: 100,
            file_bytes: u64::MAX,
            transactions,
            elapsed_ns: 5,
            settings: settings.map(|(n, v)| (n.into(), v.into())).into(),
        };
        let sqlite = of("sqlite", 7, [("journal", "wal"), ("sync", "full")]);
        let other = of("sqlite", 3, [("journal", "delete"), ("sync", "full")]);
        let both = sqlite.clone().and(&other);
        assert_eq!((both.workload.as_str(), both.transactions), ("sqlite", 10));
        assert_eq!((both.payload_bytes, both.file_bytes), (200, u64::MAX));
        assert_eq!(both.settings, [("sync".into(), "full".into())].into());
        // Operations are not transactions.
        let file = of("file", 1000, [("journal", "x"), ("mode", "y")]);
        let mixed = [sqlite.clone().and(&file), file.clone().and(&sqlite)];
        for mixed in mixed {
            assert_eq!((mixed.transactions, mixed.counts_operations()), (7, false));
            assert_eq!(mixed.and(&file).transactions, 7);
        }
        let files = file.clone().and(&file);
        assert_eq!(
            (files.transactions, files.counts_operations()),
            (2000, true)
        );
    }

    #[test]
    fn what_the_causes_cover_is_added_up_and_said() {
        let one = Causes {
            transactions: 1,
            copies: 2,
            dirtied: 3,
            named: 4,
        };
        let both = one.plus(Causes {
            copies: u64::MAX,
            ..one
        });
        assert_eq!(
            both.to_string(),
            "2 whole transactions: 18446744073709551615 copies in the journal, 6 blocks dirtied, a handle named for 8"
        );
    }

    /// For a filesystem on a mapped device, `s_dev` in file entries is the number of the mapped device.
    #[test]
    fn a_filesystem_has_the_number_of_its_own_device() {
        let mut manifest = Manifest {
            snapshot: Some(Snapshot::default()),
            ..Manifest::default()
        };
        manifest.device.dev = "7:1".into();
        assert_eq!(manifest.filesystem_dev(), Some(7 << 20 | 1));
        manifest.filesystem = Some(Filesystem::default());
        assert_eq!(manifest.filesystem_dev(), Some(7 << 20 | 1));
        manifest.filesystem = Some(Filesystem {
            device: Some("dm-3".into()),
            dev: Some("253:3".into()),
            ..Filesystem::default()
        });
        assert_eq!(manifest.filesystem_dev(), Some(253 << 20 | 3));
        manifest.snapshot = None;
        assert_eq!(manifest.filesystem_dev(), None);
    }
}
