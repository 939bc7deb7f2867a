// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block events from the block layer's plain tracepoints, written as blktrace writes them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use mostrace_bundle::blk_io_trace::{BlkIoTrace, Prefix, Version, action};
use zerocopy::{IntoBytes, LE};

use super::block_event::{Fields, Seen, TracedDevice};
use super::format::Format;
use super::instance::{self, Instance, Record};
use crate::error::Result;
use crate::machine::device::Device;
use crate::sink::{Sink, Step};
use crate::source::ending::{Ending, wait_for_completions};
use crate::source::{Losses, POLL_INTERVAL, Provides, Remark, Source};

/// The tracepoints, with blktrace's action for each. They begin in this order, so that each issue that is recorded has its end, and
/// few have no queueing.
const EVENTS: [(&str, u64); 6] = [
    (
        "block/block_rq_complete",
        action::ta::COMPLETE | TC_COMPLETE,
    ),
    ("block/block_rq_requeue", action::ta::REQUEUE | TC_REQUEUE),
    ("block/block_bio_queue", action::ta::QUEUE | TC_QUEUE),
    ("block/block_split", action::ta::SPLIT),
    ("block/block_rq_insert", action::ta::INSERT | TC_QUEUE),
    ("block/block_rq_issue", action::ta::ISSUE | TC_ISSUE),
];
/// The number of tracepoints, the first ones, that follow an issued request to its end. They end after the others.
const ENDS: usize = 2;
/// The tracepoint of bios that complete without a request. On a disk with requests it reports nothing but the plaintext of bios
/// that the kernel has encrypted itself, once more (`is_plaintext` in `events.bpf.c`).
const BIO_COMPLETE: (&str, u64) = (
    "block/block_bio_complete",
    action::ta::COMPLETE | TC_COMPLETE,
);
/// The tracepoints that report a bio; the others report a request.
const OF_BIOS: [&str; 3] = ["block/block_bio_queue", "block/block_split", BIO_COMPLETE.0];
const TC_QUEUE: u64 = 1 << 20;
const TC_REQUEUE: u64 = 1 << 21;
const TC_ISSUE: u64 = 1 << 22;
const TC_COMPLETE: u64 = 1 << 23;

/// The poll interval while few events come. The buffers hold what some 100,000 requests a second leave on one CPU in 60 ms.
const IDLE_INTERVAL: Duration = Duration::from_millis(40);
/// If this many events come at a time, the buffers are polled often.
const MANY: usize = 1 << 8;

/// The names of the tracepoints, for checks whether they exist.
pub(crate) const NAMES: [&str; 6] = [
    EVENTS[0].0,
    EVENTS[1].0,
    EVENTS[2].0,
    EVENTS[3].0,
    EVENTS[4].0,
    EVENTS[5].0,
];

/// The running tracepoints.
pub(crate) struct TracefsEvents {
    instance: Instance,
    /// The fields of each tracepoint, by its number.
    fields: BTreeMap<u16, Fields>,
    target: TracedDevice,
    /// The name that was last noted for each thread.
    names: BTreeMap<u32, Vec<u8>>,
    ending: Ending,
    poll_interval: Duration,
}

/// Returns a filter for events that have a `dev`.
pub(super) fn only(devs: &[u32]) -> String {
    let each: Vec<String> = devs.iter().map(|dev| format!("dev == {dev}")).collect();
    each.join(" || ")
}

/// Returns the tracepoints for a device.
fn events(device: &Device) -> impl Iterator<Item = (&'static str, u64)> {
    let of_bios = (!device.has_requests()).then_some(BIO_COMPLETE);
    EVENTS.into_iter().chain(of_bios)
}

fn fields(tracefs: &Path, device: &Device) -> Result<BTreeMap<u16, Fields>> {
    events(device)
        .map(|(event, action)| {
            let format = Format::read(tracefs, event)?;
            let is_of_bios = OF_BIOS.contains(&event);
            Ok((format.id, Fields::of(action, is_of_bios, &format)?))
        })
        .collect()
}

impl TracefsEvents {
    /// Starts the tracepoints.
    ///
    /// # Errors
    /// Returns an error if the kernel lacks one of them, or refuses an instance.
    pub fn start(device: &Device, sink: &mut Sink) -> Result<TracefsEvents> {
        let fields = fields(instance::root()?, device)?;
        let filter = only(&[device.dev, device.disk_dev]);
        let events: Vec<_> = events(device)
            .map(|(event, _)| (event, filter.clone()))
            .collect();
        let instance = Instance::start("events", &events)?;
        sink.events.count_in_flight();
        Ok(TracefsEvents {
            instance,
            fields,
            target: TracedDevice::of(device),
            names: BTreeMap::new(),
            ending: Ending::not_yet(),
            poll_interval: POLL_INTERVAL,
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
        let step = Step {
            action: seen.action,
            sector: seen.sector,
            bytes: seen.bytes,
        };
        if !self.ending.takes(record.time_ns, step, &mut sink.events) {
            return Ok(());
        }
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

    fn poll_interval(&self) -> Duration {
        self.poll_interval
    }

    fn poll(&mut self, sink: &mut Sink) -> Result<()> {
        let records = self.instance.take()?;
        self.poll_interval = match records.len() {
            0..MANY => IDLE_INTERVAL.min(self.poll_interval * 2),
            _ => POLL_INTERVAL,
        };
        self.push(records, sink)
    }

    fn stop(&mut self, _what: Provides, sink: &mut Sink) -> Result<()> {
        self.ending.begin();
        self.instance.end_but(ENDS)?;
        wait_for_completions(sink, |sink| {
            let records = self.instance.take()?;
            self.push(records, sink)
        })?;
        let records = self.instance.stop()?;
        self.push(records, sink)
    }

    fn finish(&mut self, _sink: &mut Sink) -> Result<()> {
        self.instance.remove();
        Ok(())
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

    #[test]
    fn filters_name_each_device() {
        assert_eq!(only(&[5, 7]), "dev == 5 || dev == 7");
    }
}
