// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records block events with the project's own probes, for kernels without a block tracer.

use std::os::fd::BorrowedFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

use mostrace_bundle::blk_io_trace::action::is_note;
use mostrace_bundle::blk_io_trace::{BlkIoTrace, Prefix, Version};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, LE};

use super::bio_number::BioNumbers;
use super::event_probes::{ENDS, EventProbes};
use super::forwarder::{EventForwarder, Forwarded};
use super::stream::Stream;
use crate::error::{Error, Result};
use crate::machine::device::Device;
use crate::sink::{EventFiles, Sink, Step};

/// The time without events after which, at the end, requests in flight are no longer waited for.
const SILENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(2);

/// The attached probes of block events.
pub(super) struct BlockEvents {
    stream: Stream,
    /// The probes of entries, if they forward queued bios and completed requests.
    forwarder: Option<EventForwarder>,
    records: Records,
}

impl BlockEvents {
    /// Attaches the probes. If they were loaded without the forwarded events, they need a forwarder.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses them.
    pub fn start(
        probes: &EventProbes<'_>,
        forwarder: Option<EventForwarder>,
        device: &Device,
        sink: &mut Sink,
    ) -> Result<BlockEvents> {
        if let Some(forwarder) = &forwarder {
            forwarder.begin(&probes.ring()?)?;
        }
        let stream = probes.attach()?;
        sink.events.count_in_flight();
        let records = Records {
            device: device.dev,
            numbers: BioNumbers::new(),
            is_ending: false,
        };
        Ok(BlockEvents {
            stream,
            forwarder,
            records,
        })
    }

    /// Returns a descriptor that can be read when there is something to poll for.
    pub fn wakeup_fd(&self) -> BorrowedFd<'_> {
        self.stream.wakeup_fd()
    }

    /// Moves what has come since the last call to the sink.
    ///
    /// # Errors
    /// Returns an error if a record is malformed, or if the bundle cannot be written.
    pub fn poll(&mut self, sink: &mut Sink) -> Result<()> {
        let BlockEvents {
            stream, records, ..
        } = self;
        stream.poll(|record| records.put(record, &mut sink.events))
    }

    /// Moves all that the probes have written so far to the sink.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`BlockEvents::poll`].
    pub fn drain(&mut self, sink: &mut Sink) -> Result<()> {
        let BlockEvents {
            stream, records, ..
        } = self;
        stream.drain(|record| records.put(record, &mut sink.events))
    }

    /// Stops the recording of new requests, and then gives those that were issued before time to complete.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`BlockEvents::poll`].
    pub fn stop(&mut self, sink: &mut Sink) -> Result<()> {
        self.records.is_ending = true;
        self.end(Forwarded::Queued)?;
        self.detach_but(&ENDS, sink)?;
        self.wait_for_completions(sink)?;
        self.end(Forwarded::Completed)?;
        self.detach_but(&[], sink)
    }

    fn end(&self, kind: Forwarded) -> Result<()> {
        let forwarder = self.forwarder.as_ref();
        forwarder.map_or(Ok(()), |forwarder| forwarder.end(kind))
    }

    fn detach_but(&mut self, kept: &[&str], sink: &mut Sink) -> Result<()> {
        let BlockEvents {
            stream, records, ..
        } = self;
        stream.detach_but(kept, |record| records.put(record, &mut sink.events))
    }

    /// Records the completions of requests that were issued, as long as some keep coming.
    fn wait_for_completions(&mut self, sink: &mut Sink) -> Result<()> {
        let mut since = Instant::now();
        let mut left = sink.events.in_flight();
        while left > Some(0) && since.elapsed() < SILENCE {
            sleep(TICK);
            self.drain(sink)?;
            let now = sink.events.in_flight();
            if now < left {
                since = Instant::now();
            }
            left = now;
        }
        Ok(())
    }
}

/// `struct block_record` of blockevents.bpf.h; the pdu follows.
#[derive(FromBytes, KnownLayout, Immutable)]
#[repr(C)]
struct BlockRecord {
    time: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    pid: u32,
    cpu: u16,
    error: u16,
}

const HEAD: usize = size_of::<BlkIoTrace<LE>>();
const PDU_MAX: usize = 24;

/// Writes records to the sink.
struct Records {
    device: u32,
    numbers: BioNumbers,
    /// True once nothing new is recorded: completions of requests that were issued after that are left out.
    is_ending: bool,
}

impl Records {
    fn put(&self, data: &[u8], events: &mut EventFiles) -> Result<()> {
        let malformed = || Error::bpf("malformed block record");
        let (event, pdu) = BlockRecord::read_from_prefix(data).map_err(|_| malformed())?;
        let (cpu, action) = (u32::from(event.cpu), u64::from(event.action));
        if is_note(action) {
            return events.name(cpu, event.pid, event.time, pdu);
        }
        let step = Step {
            action,
            sector: event.sector,
            bytes: event.bytes,
        };
        if !events.follow(event.time, step) && self.is_ending {
            return Ok(());
        }
        let mut record = [0; HEAD + PDU_MAX];
        let len = HEAD + pdu.len();
        record[..HEAD].copy_from_slice(head(&event, self.device, pdu.len()).as_bytes());
        if !pdu.is_empty() {
            let behind = record.get_mut(HEAD..len).ok_or_else(malformed)?;
            behind.copy_from_slice(pdu);
            self.numbers.encode(action, behind);
        }
        events.push(cpu, event.pid, &record[..len])
    }
}

/// Makes the head of a record; the sink fills in its sequence number.
fn head(event: &BlockRecord, device: u32, pdu_len: usize) -> BlkIoTrace<LE> {
    BlkIoTrace {
        prefix: Prefix {
            magic: Version::V7.magic().into(),
            sequence: 0.into(),
            time: event.time.into(),
        },
        sector: event.sector.into(),
        bytes: event.bytes.into(),
        action: event.action.into(),
        pid: event.pid.into(),
        device: device.into(),
        cpu: u32::from(event.cpu).into(),
        error: event.error.into(),
        pdu_len: (pdu_len as u16).into(),
    }
}
