// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records block events with the project's own probes, for kernels without a block tracer.

use std::thread::sleep;
use std::time::{Duration, Instant};

use mostrace_bundle::blk_io_trace::action::is_note;
use mostrace_bundle::blk_io_trace::{BlkIoTrace, Prefix, Version};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, LE};

use super::bio_number::BioNumbers;
use super::event_probes::{ENDS, EventProbes};
use super::forwarder::{EventForwarder, Forwarded};
use super::patterns::Patterns;
use super::programs::Programs;
use super::shared_ring;
use super::stream::Stream;
use crate::error::{Error, Result};
use crate::machine::clock;
use crate::machine::device::Device;
use crate::sink::{EventFiles, Sink, Step};

/// The time without events after which, at the end, requests in flight are no longer waited for.
const SILENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(2);

/// The attached probes of block events.
pub(super) struct BlockEvents {
    device: Device,
    programs: Programs,
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
            forwarder.begin()?;
        }
        let programs = probes.attach()?;
        sink.events.count_in_flight();
        Ok(BlockEvents {
            device: device.clone(),
            programs,
            forwarder,
            records: Records::of(device.dev),
        })
    }

    /// Returns what takes the events of the ring.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// Stops the recording of new requests, and then gives those that were issued before time to complete. `ring` is the ring that
    /// the probes fill, `patterns` those that it has told.
    ///
    /// # Errors
    /// Returns an error if a record is malformed, or if the bundle cannot be written.
    pub fn stop(
        &mut self,
        ring: &mut Stream,
        patterns: &mut Patterns,
        sink: &mut Sink,
    ) -> Result<()> {
        self.records.ending_ns = clock::now().start_mono_ns;
        self.end(Forwarded::Queued)?;
        self.programs.detach_but(&ENDS);
        self.drain(ring, patterns, sink)?;
        self.wait_for_completions(ring, patterns, sink)?;
        self.end(Forwarded::Completed)?;
        self.programs.detach_but(&[]);
        self.drain(ring, patterns, sink)
    }

    fn end(&self, kind: Forwarded) -> Result<()> {
        let forwarder = self.forwarder.as_ref();
        forwarder.map_or(Ok(()), |forwarder| forwarder.end(kind))
    }

    fn drain(&self, ring: &mut Stream, patterns: &mut Patterns, sink: &mut Sink) -> Result<()> {
        ring.drain(|record| shared_ring::put(record, Some(&self.records), patterns, sink))
    }

    /// Records the completions of requests that were issued, as long as some keep coming. If records wait, it is not known which
    /// requests were issued: then the device's last requests are waited for.
    fn wait_for_completions(
        &self,
        ring: &mut Stream,
        patterns: &mut Patterns,
        sink: &mut Sink,
    ) -> Result<()> {
        let mut since = Instant::now();
        while ring.is_deferred() && self.device.is_busy() && since.elapsed() < SILENCE {
            sleep(TICK);
        }
        let mut left = sink.events.in_flight();
        while left > Some(0) && since.elapsed() < SILENCE {
            sleep(TICK);
            self.drain(ring, patterns, sink)?;
            let now = sink.events.in_flight();
            if now < left {
                since = Instant::now();
            }
            left = now;
        }
        Ok(())
    }
}

/// `MOSTRACE_BLOCK`; it is in no table.
pub(super) const TYPE_BLOCK: u16 = 3;

/// `struct block_record` of blockevents.bpf.h; the pdu follows.
#[derive(Clone, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(super) struct BlockRecord {
    pub kind: u16,
    pub size: u16,
    pub pid: u32,
    pub time: u64,
    pub sector: u64,
    pub bytes: u32,
    pub action: u32,
    pub cpu: u16,
    pub error: u16,
    /// The number of the pattern that the record is from now on, or 0.
    pub pattern: u32,
}

const _: () = assert!(size_of::<BlockRecord>() == 40);

const PDU_MAX: usize = 24;

/// Writes events to the sink.
pub(super) struct Records {
    device: u32,
    numbers: BioNumbers,
    /// The time from which on nothing new is recorded: completions of requests that were issued after that are left out.
    ending_ns: u64,
}

impl Records {
    /// Takes events of this device.
    pub fn of(device: u32) -> Records {
        Records {
            device,
            numbers: BioNumbers::new(),
            ending_ns: u64::MAX,
        }
    }

    /// Takes one event, which has exactly these bytes.
    ///
    /// # Errors
    /// Returns an error if it is malformed, or if the bundle cannot be written.
    #[inline]
    pub fn put(&self, bytes: &[u8], events: &mut EventFiles) -> Result<()> {
        let malformed = || Error::bpf("malformed block record");
        let (event, pdu) = BlockRecord::ref_from_prefix(bytes).map_err(|_| malformed())?;
        let (cpu, action) = (u32::from(event.cpu), u64::from(event.action));
        if is_note(action) {
            return events.name(cpu, event.pid, event.time, pdu);
        }
        let step = Step {
            action,
            sector: event.sector,
            bytes: event.bytes,
        };
        if !events.follow(event.time, step) && event.time >= self.ending_ns {
            return Ok(());
        }
        if pdu.len() > PDU_MAX {
            return Err(malformed());
        }
        events.push_made(cpu, event.pid, event.time, |sequence, record| {
            let head = head(event, self.device, sequence, pdu.len());
            record.extend_from_slice(head.as_bytes());
            self.numbers.encode(action, pdu, record);
        })
    }
}

/// Makes the head of a record.
#[inline]
fn head(event: &BlockRecord, device: u32, sequence: u32, pdu_len: usize) -> BlkIoTrace<LE> {
    BlkIoTrace {
        prefix: Prefix {
            magic: Version::V7.magic().into(),
            sequence: sequence.into(),
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
