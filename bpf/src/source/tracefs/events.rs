// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block events from the block layer's plain tracepoints, written as blktrace writes them.

use std::collections::BTreeMap;
use std::path::Path;

use mostrace_bundle::blk_io_trace::{BlkIoTrace, Prefix, Version, action};
use zerocopy::{IntoBytes, LE};

use super::format::{Field, Format};
use super::instance::{self, Instance, Record};
use super::rwbs::categories;
use crate::error::Result;
use crate::machine::device::Device;
use crate::sink::Sink;
use crate::source::{Losses, Provides, Remark, Source};

/// The tracepoints, and blktrace's action of each.
const EVENTS: [(&str, u64); 6] = [
    ("block/block_bio_queue", action::ta::QUEUE | TC_QUEUE),
    ("block/block_split", action::ta::SPLIT),
    ("block/block_rq_insert", action::ta::INSERT | TC_QUEUE),
    ("block/block_rq_issue", action::ta::ISSUE | TC_ISSUE),
    ("block/block_rq_requeue", action::ta::REQUEUE | TC_REQUEUE),
    (
        "block/block_rq_complete",
        action::ta::COMPLETE | TC_COMPLETE,
    ),
];
const TC_QUEUE: u64 = 1 << 20;
const TC_REQUEUE: u64 = 1 << 21;
const TC_ISSUE: u64 = 1 << 22;
const TC_COMPLETE: u64 = 1 << 23;

/// The names of the tracepoints, for whoever asks whether they are there.
pub(crate) const NAMES: [&str; 6] = [
    EVENTS[0].0,
    EVENTS[1].0,
    EVENTS[2].0,
    EVENTS[3].0,
    EVENTS[4].0,
    EVENTS[5].0,
];

/// The places in an event of what is taken of it.
#[derive(Debug)]
struct Fields {
    action: u64,
    pid: Field,
    dev: Field,
    sector: Field,
    rwbs: Field,
    nr_sector: Option<Field>,
    bytes: Option<Field>,
    new_sector: Option<Field>,
    error: Option<Field>,
    comm: Option<Field>,
}

impl Fields {
    fn of(action: u64, format: &Format) -> Result<Fields> {
        Ok(Fields {
            action,
            pid: format.field("common_pid")?,
            dev: format.field("dev")?,
            sector: format.field("sector")?,
            rwbs: format.field("rwbs")?,
            nr_sector: format.find("nr_sector"),
            bytes: format.find("bytes"),
            new_sector: format.find("new_sector"),
            error: format.find("error"),
            comm: format.find("comm"),
        })
    }
}

/// What goes into the trace of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    action: u64,
    pid: u32,
    dev: u32,
    sector: u64,
    bytes: u32,
    error: u16,
    /// The sector at which a bio was split.
    new_sector: Option<u64>,
    comm: Option<Vec<u8>>,
}

impl Fields {
    /// Reads a record; None if it is shorter than its format.
    fn read(&self, record: &[u8]) -> Option<Seen> {
        let number = |field: Option<Field>| field?.number(record);
        let sector = self.sector.number(record)?;
        let new_sector = number(self.new_sector);
        let sectors = match new_sector {
            // The event is of the part ahead of the split.
            Some(new) => new.saturating_sub(sector),
            None => number(self.nr_sector).unwrap_or(0),
        };
        let bytes = number(self.bytes).unwrap_or(sectors << 9);
        let error = self.error.and_then(|error| error.signed(record));
        Some(Seen {
            action: self.action | categories(self.rwbs.text(record)?, sectors),
            pid: self.pid.number(record)? as u32,
            dev: self.dev.number(record)? as u32,
            // Of a flush, and of a command of another kind.
            sector: if sector == u64::MAX { 0 } else { sector },
            bytes: bytes as u32,
            error: error.unwrap_or(0).unsigned_abs() as u16,
            new_sector,
            comm: self
                .comm
                .and_then(|comm| comm.text(record))
                .map(<[u8]>::to_vec),
        })
    }
}

/// The device whose events are kept.
#[derive(Debug)]
struct Target {
    dev: u32,
    disk_dev: u32,
    start: u64,
    end: u64,
}

impl Target {
    fn of(device: &Device) -> Target {
        Target {
            dev: device.dev,
            disk_dev: device.disk_dev,
            start: device.info.start_sector,
            end: device.end_sector(),
        }
    }

    /// Returns true for an event of the device. Requests name the disk, and bios, from 5.12 on, the partition. What has no sectors
    /// may be any partition's.
    fn has(&self, seen: &Seen) -> bool {
        let is_device = seen.dev == self.dev || seen.dev == self.disk_dev;
        let end = seen
            .sector
            .saturating_add(u64::from(seen.bytes).div_ceil(512));
        let whole = self.dev == self.disk_dev;
        is_device && (whole || seen.bytes == 0 || seen.sector < self.end && end > self.start)
    }
}

/// The running tracepoints.
pub(crate) struct TracefsEvents {
    instance: Instance,
    /// The fields of each tracepoint, by its number.
    fields: BTreeMap<u16, Fields>,
    target: Target,
    /// The name that was noted last, by thread.
    names: BTreeMap<u32, Vec<u8>>,
}

/// The filter of an event with a `dev`.
pub(super) fn only(devs: &[u32]) -> String {
    let each: Vec<String> = devs.iter().map(|dev| format!("dev == {dev}")).collect();
    each.join(" || ")
}

fn fields(tracefs: &Path) -> Result<BTreeMap<u16, Fields>> {
    EVENTS
        .iter()
        .map(|&(event, action)| {
            let format = Format::read(tracefs, event)?;
            Ok((format.id, Fields::of(action, &format)?))
        })
        .collect()
}

impl TracefsEvents {
    /// Starts the tracepoints.
    ///
    /// # Errors
    /// The kernel does not have all of them, or refuses an instance.
    pub fn start(device: &Device) -> Result<TracefsEvents> {
        let fields = fields(instance::root()?)?;
        let filter = only(&[device.dev, device.disk_dev]);
        let events = NAMES.map(|event| (event, filter.clone()));
        Ok(TracefsEvents {
            instance: Instance::start("events", &events)?,
            fields,
            target: Target::of(device),
            names: BTreeMap::new(),
        })
    }

    fn push(&mut self, records: Vec<Record>, sink: &mut Sink) -> Result<()> {
        for record in records {
            let fields = self.fields.get(&record.id());
            let seen = fields.and_then(|fields| fields.read(&record.bytes));
            if let Some(seen) = seen.filter(|seen| self.target.has(seen)) {
                self.put(&record, &seen, sink)?;
            }
        }
        Ok(())
    }

    fn put(&mut self, record: &Record, seen: &Seen, sink: &mut Sink) -> Result<()> {
        if let Some(comm) = &seen.comm
            && self.names.get(&seen.pid) != Some(comm)
        {
            sink.events
                .name(record.cpu, seen.pid, record.time_ns, comm)?;
            self.names.insert(seen.pid, comm.clone());
        }
        let pdu = seen
            .new_sector
            .map_or(Vec::new(), |at| at.to_be_bytes().to_vec());
        let head: BlkIoTrace<LE> = BlkIoTrace {
            prefix: Prefix {
                magic: Version::V7.magic().into(),
                sequence: 0.into(),
                time: record.time_ns.into(),
            },
            sector: seen.sector.into(),
            bytes: seen.bytes.into(),
            action: (seen.action as u32).into(),
            pid: seen.pid.into(),
            device: self.target.dev.into(),
            cpu: record.cpu.into(),
            error: seen.error.into(),
            pdu_len: (pdu.len() as u16).into(),
        };
        let mut bytes = head.as_bytes().to_vec();
        bytes.extend(pdu);
        sink.events.push(record.cpu, seen.pid, &bytes)
    }
}

impl Source for TracefsEvents {
    fn name(&self) -> &'static str {
        "tracefs"
    }

    fn provides(&self) -> Provides {
        Provides::EVENTS | Provides::SEGMENTS
    }

    fn poll(&mut self, sink: &mut Sink) -> Result<()> {
        let records = self.instance.take()?;
        self.push(records, sink)
    }

    fn stop(&mut self, _what: Provides, sink: &mut Sink) -> Result<()> {
        let records = self.instance.stop()?;
        self.push(records, sink)
    }

    fn losses(&self) -> Result<Losses> {
        let lost = self.instance.lost();
        Ok(lost
            .map(|lost| ("events_tracefs".to_owned(), lost))
            .into_iter()
            .collect())
    }

    fn remarks(&self) -> Vec<Remark> {
        self.instance.remarks()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(dev: u32, sector: u64, bytes: u32) -> Seen {
        Seen {
            action: 0,
            pid: 1,
            dev,
            sector,
            bytes,
            error: 0,
            new_sector: None,
            comm: None,
        }
    }

    #[test]
    fn a_partition_has_its_own_sectors_alone() {
        let disk = Target {
            dev: 16,
            disk_dev: 16,
            start: 0,
            end: 1000,
        };
        let partition = Target {
            dev: 17,
            start: 100,
            end: 200,
            ..disk
        };
        for (dev, sector, bytes, of_disk, of_partition) in [
            (16, 0, 512, true, false),
            (16, 99, 1024, true, true),
            (17, 100, 512, false, true),
            (16, 200, 512, true, false),
            (16, 0, 0, true, true),
            (32, 100, 512, false, false),
        ] {
            let seen = seen(dev, sector, bytes);
            assert_eq!(
                (disk.has(&seen), partition.has(&seen)),
                (of_disk, of_partition),
                "{seen:?}"
            );
        }
    }

    #[test]
    fn filters_name_each_device() {
        assert_eq!(only(&[5, 7]), "dev == 5 || dev == 7");
    }
}
