// SPDX-License-Identifier: MIT OR Apache-2.0
//! `manifest.json`: what was captured, where, how, and what was lost.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::counters::Counters;

/// The version this crate writes, and the newest it reads.
pub const SCHEMA: u32 = 1;

/// The whole of `manifest.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this format.
    pub schema: u32,
    /// Name and version of the program that wrote the bundle.
    pub tool: String,
    /// What the user calls the recording (`--label`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Whether the capture came to its end.
    pub state: State,
    /// The machine's kernel.
    pub kernel: Kernel,
    /// The traced block device.
    pub device: Device,
    /// The filesystem on it, if one was recognised.
    pub filesystem: Option<Filesystem>,
    /// If the filesystem lies on a mapped device (dm) above the traced one: where the sectors of that are, in
    /// their order. The snapshot is in the sectors of the mapped device then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mapping: Vec<Mapping>,
    /// If the recording was cut (`--segment`): which piece of it this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<Segment>,
    /// The clocks at the start of the capture, or of its segment.
    pub clock: Clock,
    /// Where events and entries came from.
    pub sources: Sources,
    /// Records lost, by stage; 0 means counted and none lost.
    pub losses: BTreeMap<String, u64>,
    /// Records kept, by kind.
    pub counts: BTreeMap<String, u64>,
    /// What others did to the tracing while it ran, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interference: Vec<String>,
    /// The trace held against the kernel's own counters; None if the capture did not come to its end, and in
    /// bundles of before this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<Counters>,
    /// Loop devices whose backing files lie on the traced filesystem: what their workers write is written for these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<Loop>,
    /// The filesystem's functions that began the handles of `handle.entries`, which have their index here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<String>,
    /// The tables of causes held against the journal's copies; None without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causes: Option<Causes>,
    /// Sizes of the bundle's other files when the capture was complete, bytes, by name; empty before,
    /// and in bundles of before this field.
    #[serde(default)]
    pub files: BTreeMap<String, u64>,
    /// The traced command.
    pub command: Option<Command>,
    /// What the workload says that it stored.
    pub payload: Option<Payload>,
    /// The filesystem's metadata at the end of the capture.
    pub snapshot: Option<Snapshot>,
    /// What a reader should know: parts left out, and the like.
    pub notes: Vec<String>,
    /// The sources that were tried before those that were taken, and why they were not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<String>,
}

impl Manifest {
    /// The number of the filesystem that the snapshot is of, as `s_dev` in file entries: major << 20 |
    /// minor. None without a snapshot, or if it cannot be read.
    #[must_use]
    pub fn filesystem_dev(&self) -> Option<u32> {
        self.snapshot.as_ref()?;
        let mapped = self.filesystem.as_ref().and_then(|f| f.dev.as_ref());
        let (major, minor) = mapped.unwrap_or(&self.device.dev).split_once(':')?;
        let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
        (major < 1 << 12 && minor < 1 << 20).then_some(major << 20 | minor)
    }
}

/// A loop device, and the file that it is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loop {
    /// Kernel name, as `loop0`.
    pub name: String,
    /// Inode number of its backing file on the traced filesystem.
    pub inode: u64,
}

/// A piece of a recording that was cut by time or size. It can be read alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Its place among them, from 1.
    pub number: u32,
    /// Whether the recording ended with it; before that, and if it was killed, false.
    pub last: bool,
    /// Of its files, by name: where its own records begin, bytes. Those ahead of them are in the segment before too: the
    /// events and entries of requests that were under way at the cut. None of them is a completion.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own_from: BTreeMap<String, u64>,
    /// Requests that were issued before its end and are told once more in the next one.
    pub under_way: u64,
}

/// Whether the capture came to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Written at the start; still there if the recorder was killed.
    #[default]
    Recording,
    /// Stopped in order.
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
    /// Bytes.
    pub page_size: u32,
    /// Number of possible CPUs.
    pub cpus: u32,
}

/// The traced block device. Sectors are 512 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// As given to `record`.
    pub path: String,
    /// Kernel name, as `loop0` or `sda1`.
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
    /// The active one of `queue/scheduler`.
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
    /// `loop/backing_file` of a loop device.
    pub backing_file: Option<String>,
}

/// The filesystem on the device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filesystem {
    /// As `/proc/mounts` or the superblock says: `ext4`, `f2fs`, `vfat`.
    pub kind: String,
    /// None if it was not mounted.
    pub mount_point: Option<String>,
    /// Options in `/proc/mounts`' form.
    pub mount_options: Option<String>,
    /// Features that it was made with, by the names of its own tools; None if they are not known, as of FAT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Vec<String>>,
    /// Kernel name of the device that it is on, if that is not the traced one but a mapped one above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// major:minor of that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<String>,
}

/// A run of sectors of a mapped device (dm), and the disk that it lies on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    /// First sector on the mapped device.
    pub start_sector: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// Type of target, as `linear` or `crypt`; of several, the uppermost first.
    pub target: String,
    /// major:minor of the partition or disk below.
    pub lower_dev: String,
    /// Its kernel name.
    pub lower_name: String,
    /// major:minor of its whole disk.
    pub lower_disk_dev: String,
    /// First sector on that disk.
    pub lower_start_sector: u64,
}

/// Events and entries carry CLOCK_MONOTONIC; this ties it to the calendar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// CLOCK_MONOTONIC at the start, ns.
    pub start_mono_ns: u64,
    /// CLOCK_REALTIME at the same moment, ns since 1970.
    pub start_unix_ns: u64,
    /// CLOCK_MONOTONIC when tracing stopped, ns; 0 if it did not stop in order.
    pub stop_mono_ns: u64,
}

/// Where events and entries came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    /// `blktrace`, `ftrace`, `bpf` or `tracefs`.
    pub events: String,
    /// `bpf`, `kernel`, `tracefs` or `none`.
    pub entries: String,
    /// `temp`, `all` or a glob.
    pub files: String,
    /// Of handles, dirtied blocks and system calls: `bpf` or `none`.
    #[serde(default)]
    pub causes: String,
}

/// What the handles of a recording dirtied, held against the copies that its journal wrote. Copies of transactions that
/// began before the recording, and dirtied blocks of those that it did not see committed, are in no sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Causes {
    /// Transactions that are compared: of those, the recording has a first handle and a copy.
    pub transactions: u64,
    /// Their copies.
    pub copies: u64,
    /// Blocks that their handles dirtied, as the kernel counts them.
    pub dirtied: u64,
    /// Copies of blocks that a handle is named for.
    pub named: u64,
}

impl Causes {
    /// The sums of both.
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
    /// Exit status, or 128 + the signal that ended it.
    pub exit_status: Option<i32>,
    /// Its process. None where the recorder did not know its number among all processes of the machine, and in bundles of
    /// before this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Whether it had the filesystem to itself: one that was made for it, which nobody else saw. None in bundles of before this
    /// field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<bool>,
}

/// What a workload stored; `record` passes the place to write it as `$MOSTRACE_PAYLOAD`. Several workloads write one after the other,
/// and are added up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Payload {
    /// Name of the workload, as `sqlite`; of several, each once, as `sqlite, file`.
    pub workload: String,
    /// Bytes of the values that the application asked to be stored.
    pub payload_bytes: u64,
    /// Bytes passed to write(), pwrite() and the like.
    pub file_bytes: u64,
    /// Transactions committed, or operations of a workload on files; if there are both, the transactions alone.
    pub transactions: u64,
    /// Wall time of the measured part, ns; of several, the sum.
    pub elapsed_ns: u64,
    /// The settings, by name; of several, those that all have.
    pub settings: BTreeMap<String, String>,
}

/// Workloads that count operations on files.
const OF_FILES: [&str; 3] = ["file", "names", "mobigen"];

impl Payload {
    /// Whether `transactions` are operations on files, and not transactions.
    #[must_use]
    pub fn counts_operations(&self) -> bool {
        self.workloads().all(|name| OF_FILES.contains(&name))
    }

    /// This one and another's of the same recording.
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

/// Between names of workloads.
const SEPARATOR: &str = ", ";

/// The saved metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// How it was taken: `e2image`, or `walk` for what the map builder reads (f2fs, FAT, and ext4 where there is no e2image).
    pub method: String,
    /// Size of the device it stands for, bytes.
    pub size: u64,
    /// First sector of the filesystem on the disk.
    pub start_sector: u64,
}

/// The environment variable that names the file a workload writes its [`Payload`] to, as JSON.
pub const PAYLOAD_ENV: &str = "MOSTRACE_PAYLOAD";

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
        // Operations are no transactions.
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

    /// Of a filesystem above the traced device file entries have the number of the device that it is on.
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
