// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the trace with the kernel's own counters, `/sys/class/block/X/stat`.
//!
//! The kernel counts a request's sectors when it completes, at the place where the tracers have their C event: what completed while
//! tracing must be in the trace. The counters are read before and after tracing begins, and before and after it ends, because it
//! does neither at the moment of a reading. The trace may have more requests than were counted: a request that completes in parts
//! has a C event for each, and one that was flushed has another one without bytes. A bio that the kernel encrypted itself has a C event
//! of its own after that of the request, which is not counted. Source: `block/blk-mq.c` (blk_account_io_completion,
//! blk_account_io_done), `block/blk-flush.c` (blk_account_io_flush), `block/blk-crypto-fallback.c`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use mostrace_bundle::blk_io_trace::Event;
use mostrace_bundle::blk_io_trace::action::{
    BLK_TC_DISCARD, BLK_TC_FLUSH, BLK_TC_FS, BLK_TC_PC, BLK_TC_WRITE, ta,
};
use mostrace_bundle::{Counter, Counters, Folder, Manifest, Total, Totals};

use super::missing::Missing;
use crate::error::{Result, read_line};
use crate::machine::device::Device;
use crate::sink::{EventReader, event_files_in};

const SECTOR: u64 = 512;

/// The counter of requests that were issued and never completed.
pub(super) const COMPLETIONS: &str = "completions";

/// Writes the comparison and the kernel's totals to the manifest, and the number of missing completions. Requests that the kernel
/// counted may be missing together with their issue.
pub(super) fn put(
    (counters, totals): (Counters, Option<Totals>),
    missing: &mut Missing,
    manifest: &mut Manifest,
) {
    if let Some(lost) = manifest.losses.get_mut(COMPLETIONS) {
        *lost = missing.add(*lost, counters.requests_missing());
    }
    manifest.counters = Some(counters);
    manifest.totals = totals;
}

/// The kernel's counters of a device since the device appeared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stat {
    reads: u64,
    read_bytes: u64,
    writes: u64,
    write_bytes: u64,
    /// The discards and their bytes, which are counted as writes before 4.18.
    discards: Option<u64>,
    discard_bytes: Option<u64>,
    /// The flushes that the device executed; only for a whole disk.
    flushes: Option<u64>,
}

impl Stat {
    /// Parses the fields of Documentation/admin-guide/iostats.rst: 11, from 4.18 on 15, and from 5.5 on 17.
    fn parse(text: &str) -> Option<Stat> {
        let fields: Option<Vec<u64>> = text
            .split_ascii_whitespace()
            .map(|field| field.parse().ok())
            .collect();
        let fields = fields?;
        let at = |index: usize| fields.get(index).copied();
        let bytes = |index: usize| Some(at(index)?.saturating_mul(SECTOR));
        Some(Stat {
            reads: at(0)?,
            read_bytes: bytes(2)?,
            writes: at(4)?,
            write_bytes: bytes(6)?,
            discards: at(11),
            discard_bytes: bytes(13),
            flushes: at(15),
        })
    }
}

impl std::iter::Sum for Stat {
    fn sum<I: Iterator<Item = Stat>>(stats: I) -> Stat {
        let sum = |a: Option<u64>, b: Option<u64>| b.map(|b| a.unwrap_or(0) + b);
        stats.fold(Stat::default(), |a, b| Stat {
            reads: a.reads + b.reads,
            read_bytes: a.read_bytes + b.read_bytes,
            writes: a.writes + b.writes,
            write_bytes: a.write_bytes + b.write_bytes,
            discards: sum(a.discards, b.discards),
            discard_bytes: sum(a.discard_bytes, b.discard_bytes),
            flushes: sum(a.flushes, b.flushes),
        })
    }
}

/// The sums over a trace's completions, and over those that failed, without passthrough commands and with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Both {
    without_commands: Sums,
    with_commands: Sums,
}

/// The sums over completions, and over those that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    reads: Sum,
    read_bytes: Sum,
    writes: Sum,
    write_bytes: Sum,
    discards: Sum,
    discard_bytes: Sum,
    flushes: Sum,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    all: u64,
    failed: u64,
}

impl Sum {
    fn plus(self, other: Sum) -> Sum {
        Sum {
            all: self.all.saturating_add(other.all),
            failed: self.failed.saturating_add(other.failed),
        }
    }

    fn add(&mut self, count: u64, failed: bool) {
        self.all = self.all.saturating_add(count);
        if failed {
            self.failed = self.failed.saturating_add(count);
        }
    }
}

impl Sums {
    fn push(&mut self, event: &Event<'_>) {
        let has = |bit: u64| event.action & bit != 0;
        let failed = event.error != 0;
        let is_of_request = has(BLK_TC_FS | BLK_TC_PC);
        // Only disks with requests are compared: the bytes of a bio were those of a request, or never became one.
        if !is_of_request && event.bytes > 0 && !failed {
            return;
        }
        let (requests, bytes) = match event.bytes {
            0 if has(BLK_TC_FLUSH) && !has(BLK_TC_WRITE) => {
                return self.flushes.add(1, failed);
            }
            _ if has(BLK_TC_DISCARD) => (&mut self.discards, &mut self.discard_bytes),
            _ if has(BLK_TC_WRITE) => (&mut self.writes, &mut self.write_bytes),
            _ => (&mut self.reads, &mut self.read_bytes),
        };
        requests.add(1, failed);
        // The kernel counts whole sectors; a command may have other lengths.
        bytes.add(u64::from(event.bytes) / SECTOR * SECTOR, failed);
    }
}

impl Both {
    fn push(&mut self, event: &Event<'_>) {
        if event.is_note() || event.act() != ta::COMPLETE {
            return;
        }
        self.with_commands.push(event);
        if event.action & BLK_TC_PC == 0 {
            self.without_commands.push(event);
        }
    }

    /// Adds up the event files in `folder`, as far as they concern `device`: a block tracer also records events of a partition's
    /// neighbours.
    fn of(folder: &Folder, device: &Device) -> Result<Both> {
        let own = device.info.start_sector..device.end_sector();
        let mut sums = Both::default();
        for name in event_files_in(folder)? {
            let mut events = EventReader::open(folder, &name)?;
            let mut take = |event: &Event<'_>| {
                if event.bytes == 0 || own.contains(&event.sector) {
                    sums.push(event);
                }
            };
            while events.next(&mut take)?.is_some() {}
            events.ended()?;
        }
        Ok(sums)
    }
}

/// The readings of one recording.
pub(super) struct Readings {
    device: Device,
    epoch: String,
    taken: Vec<std::result::Result<Stat, String>>,
}

/// The number of readings: before and after tracing began, before and after it ended.
const READINGS: usize = 4;

impl Readings {
    /// Starts without a reading.
    pub fn new(device: &Device) -> Self {
        Readings {
            device: device.clone(),
            epoch: epoch(device),
            taken: Vec::with_capacity(READINGS),
        }
    }

    /// Returns the readings of the next segment, which begins where this one ended: the readings around this segment's end are
    /// those around the next one's beginning.
    pub fn of_next(&self, device: &Device) -> Self {
        let end = self.taken.len().saturating_sub(2);
        Readings {
            device: device.clone(),
            epoch: self.epoch.clone(),
            taken: self.taken[end..].to_vec(),
        }
    }

    /// Reads the counters: before and after tracing begins, before and after it ends.
    pub fn take(&mut self) {
        self.taken.push(read(&self.device));
    }

    /// Compares the readings with the event files in `folder`. The totals are None if that is not possible.
    pub fn compare(&self, folder: &Folder) -> (Counters, Option<Totals>) {
        let stats: std::result::Result<Vec<_>, _> = self.taken.iter().cloned().collect();
        let compared = stats.and_then(|stats| match <[Stat; READINGS]>::try_from(stats) {
            Ok(stats) => Both::of(folder, &self.device)
                .map(|sums| compare_both(&stats, &sums, self.device.is_partition()))
                .map(|counters| (counters, self.totals(&stats)))
                .map_err(|e| e.to_string()),
            Err(_) => Err("tracing did not end in order".into()),
        });
        match compared {
            Ok((counters, totals)) => (Counters::Compared(counters), Some(totals)),
            Err(why) => (Counters::NotCompared(why), None),
        }
    }

    fn totals(&self, [_, began, ending, _]: &[Stat; READINGS]) -> Totals {
        let total = |stat: &Stat| Total {
            read_bytes: stat.read_bytes,
            write_bytes: stat.write_bytes,
        };
        Totals {
            epoch: self.epoch.clone(),
            began: total(began),
            ended: total(ending),
        }
    }
}

/// Returns the boot and the disk to which the counters belong. Before 5.15, the kernel does not number the disks that come and go.
fn epoch(device: &Device) -> String {
    let boot = read_line("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let disk = read_line(device.disk_sysfs().join("diskseq")).unwrap_or_default();
    format!("{boot} {} {disk}", device.info.dev)
}

/// Reads the counters, or returns why they tell nothing.
fn read(device: &Device) -> std::result::Result<Stat, String> {
    let disk = match device.paths.first() {
        Some(path) => Path::new("/sys/block").join(&path.name),
        None => device.disk_sysfs(),
    };
    let queue = |name: &str| read_line(disk.join("queue").join(name));
    if !device.has_requests() {
        return Err(format!("{} has no requests", device.info.disk));
    }
    if queue("iostats").is_ok_and(|on| on == "0") {
        return Err(format!("queue/iostats of {} is off", device.info.disk));
    }
    if queue("zoned").is_ok_and(|model| model != "none") {
        return Err(format!("{} is zoned", device.info.disk));
    }
    if !device.paths.is_empty() {
        return read_paths(device);
    }
    let stat = read_stat(&device.sysfs)?;
    // The disk flushes for all of its partitions.
    let flushes = stat.flushes.filter(|_| !device.is_partition());
    Ok(Stat { flushes, ..stat })
}

/// Returns the bytes written to a device since it appeared; None if the kernel does not count them.
pub(super) fn written_to(device: &Device) -> Option<u64> {
    read(device).ok().map(|stat| stat.write_bytes)
}

/// Adds up the counters of the paths of an NVMe namespace. The namespace's own counters count flushes as reads and, on some
/// kernels, not every byte (drivers/nvme/host/multipath.c, nvme_mpath_end_request).
fn read_paths(device: &Device) -> std::result::Result<Stat, String> {
    if device.is_partition() {
        return Err(format!(
            "the requests of {} are counted for all partitions together",
            device.info.disk
        ));
    }
    let stats = device.paths.iter().map(|path| {
        let folder = Path::new("/sys/block").join(&path.name);
        read_stat(&folder)
    });
    stats.sum()
}

fn read_stat(folder: &Path) -> std::result::Result<Stat, String> {
    let path = folder.join("stat");
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    Stat::parse(&text).ok_or_else(|| format!("{}: too few fields", path.display()))
}

/// Compares the readings with the trace. Whether passthrough commands are among the requests that are counted depends on the kernel:
/// on 5.10 they are, on 6.1 they are not.
fn compare_both(
    stats: &[Stat; READINGS],
    sums: &Both,
    is_partition: bool,
) -> BTreeMap<String, Counter> {
    let own = compare(stats, &sums.without_commands, is_partition);
    let all = compare(stats, &sums.with_commands, is_partition);
    let agree = |counters: &BTreeMap<_, Counter>| counters.values().all(Counter::agrees);
    if agree(&own) || !agree(&all) {
        own
    } else {
        all
    }
}

fn compare(
    [before, began, ending, after]: &[Stat; READINGS],
    sums: &Sums,
    is_partition: bool,
) -> BTreeMap<String, Counter> {
    let mut counters = BTreeMap::new();
    let mut put = |name: &str, sum: Sum, of: fn(&Stat) -> u64, is_exact: bool| {
        let counter = Counter {
            traced: sum.all,
            failed: sum.failed,
            at_least: of(ending).saturating_sub(of(began)),
            at_most: is_exact.then(|| of(after).saturating_sub(of(before))),
        };
        counters.insert(name.to_owned(), counter);
    };
    // Later kernels count IO through the node of the whole disk only for the disk.
    let exact = !is_partition;
    put("reads", sums.reads, |s| s.reads, false);
    put("read_bytes", sums.read_bytes, |s| s.read_bytes, exact);
    let counts_discards = before.discards.is_some();
    let writes = |of: Sum, discards: Sum| match counts_discards {
        true => of,
        false => of.plus(discards),
    };
    let written = writes(sums.writes, sums.discards);
    let written_bytes = writes(sums.write_bytes, sums.discard_bytes);
    put("writes", written, |s| s.writes, false);
    put("write_bytes", written_bytes, |s| s.write_bytes, exact);
    if counts_discards {
        let (discards, bytes) = (sums.discards, sums.discard_bytes);
        put("discards", discards, |s| s.discards.unwrap_or(0), false);
        let of_bytes: fn(&Stat) -> u64 = |s| s.discard_bytes.unwrap_or(0);
        put("discard_bytes", bytes, of_bytes, exact);
    }
    if before.flushes.is_some() {
        put("flushes", sums.flushes, |s| s.flushes.unwrap_or(0), true);
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel counted 20 writes; the trace has the completions of 8, and the issues of `issued` more.
    fn lost(issued: u64) -> u64 {
        let stat = |writes, reads| Stat {
            reads,
            writes,
            ..Stat::default()
        };
        let readings = [stat(3, 0), stat(5, 0), stat(25, 1), stat(26, 2)];
        let sum = |all| Sum { all, failed: 0 };
        let sums = Sums {
            writes: sum(8),
            // One was in flight when the counters were read.
            reads: sum(2),
            ..Sums::default()
        };
        let mut manifest = Manifest::default();
        manifest.losses.insert(COMPLETIONS.into(), issued);
        let counters = Counters::Compared(compare(&readings, &sums, false));
        put((counters, None), &mut Missing::default(), &mut manifest);
        assert!(!manifest.counters.unwrap().agree());
        manifest.losses[COMPLETIONS]
    }

    /// Returns true if a trace of `traced` commands agrees with a kernel that counted so many reads.
    fn of_commands(counted: u64, traced: u64) -> bool {
        let stat = |reads| Stat {
            reads,
            ..Stat::default()
        };
        let stats = [stat(0), stat(0), stat(counted), stat(counted)];
        let mut sums = Both::default();
        for _ in 0..traced {
            sums.push(&Event {
                action: BLK_TC_PC | ta::COMPLETE,
                bytes: 20,
                ..Event::default()
            });
        }
        let counters = compare_both(&stats, &sums, false);
        Counters::Compared(counters).agree()
    }

    /// Lines of 4.14, 4.19 and 5.10.
    #[test]
    fn each_age_of_the_kernel_has_its_fields() {
        let parse = |text| Stat::parse(text).unwrap();
        let old = parse(
            "      97        3     2464       10       21        7     1600       31        0       20       41\n",
        );
        let expected = Stat {
            reads: 97,
            read_bytes: 2464 * SECTOR,
            writes: 21,
            write_bytes: 1600 * SECTOR,
            ..Stat::default()
        };
        assert_eq!(old, expected);
        let expected = Stat {
            discards: Some(2),
            discard_bytes: Some(64 * SECTOR),
            ..expected
        };
        let middle = parse("97 3 2464 10 21 7 1600 31 0 20 41 2 0 64 5\n");
        assert_eq!(middle, expected);
        let new = parse("97 3 2464 10 21 7 1600 31 0 20 41 2 0 64 5 9 4\n");
        let flushes = Some(9);
        assert_eq!(
            new,
            Stat {
                flushes,
                ..expected
            }
        );
        // More may come.
        assert_eq!(
            parse("97 3 2464 10 21 7 1600 31 0 20 41 2 0 64 5 9 4 1 1\n"),
            new
        );
        for bad in [
            "",
            "97 3 2464 10 21 7\n",
            "97 3 2464 10 21 7 x 31 0 20 41\n",
        ] {
            assert_eq!(Stat::parse(bad), None);
        }
    }

    /// Before 4.18 the kernel counts a discard as a write.
    #[test]
    fn discards_are_writes_where_they_have_no_fields() {
        let stat = |writes, discards| Stat {
            writes,
            discards,
            ..Stat::default()
        };
        let sum = |all| Sum { all, failed: 0 };
        let sums = Sums {
            writes: sum(5),
            discards: sum(2),
            ..Sums::default()
        };
        let of = |end: Stat, begin: Stat| compare(&[begin, begin, end, end], &sums, false);
        let old = of(stat(7, None), stat(0, None));
        assert_eq!((old["writes"].traced, old.get("discards")), (7, None));
        let new = of(stat(5, Some(2)), stat(0, Some(0)));
        assert_eq!((new["writes"].traced, new["discards"].traced), (5, 2));
        assert!(old.values().chain(new.values()).all(Counter::agrees));
    }

    #[test]
    fn commands_are_counted_on_some_kernels() {
        assert!(of_commands(0, 3) && of_commands(3, 3));
        assert!(!of_commands(3, 2) && !of_commands(3, 0));
    }

    #[test]
    fn the_second_end_of_an_encrypted_bio_is_not_counted() {
        let mut sums = Both::default();
        for of_request in [BLK_TC_FS, 0] {
            sums.push(&Event {
                action: of_request | BLK_TC_WRITE | ta::COMPLETE,
                bytes: 4096,
                ..Event::default()
            });
        }
        let one = Sum {
            all: 4096,
            failed: 0,
        };
        assert_eq!(sums.without_commands.write_bytes, one);
    }

    #[test]
    fn of_what_is_known_to_be_missing_the_larger_is_said() {
        assert_eq!(lost(11), 12);
        assert_eq!(lost(13), 13);
    }

    #[test]
    fn what_was_not_compared_or_not_counted_adds_nothing() {
        let not_compared = |manifest: &mut Manifest| {
            let counters = Counters::NotCompared("off".into());
            put((counters, None), &mut Missing::default(), manifest);
        };
        let mut manifest = Manifest::default();
        manifest.losses.insert(COMPLETIONS.into(), 4);
        not_compared(&mut manifest);
        assert_eq!(manifest.losses[COMPLETIONS], 4);
        manifest.losses.clear();
        not_compared(&mut manifest);
        assert!(manifest.losses.is_empty());
    }
}
