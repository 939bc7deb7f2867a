// SPDX-License-Identifier: MIT OR Apache-2.0
//! The project's own probes, where the kernel has no block tracer.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

use mostrace_bundle::Folder;
use mostrace_bundle::blk_io_trace::action::is_note;
use mostrace_bundle::blk_io_trace::{BlkIoTrace, Decoded, Prefix, Version, decode};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, LE};

use super::cpu_files::{CpuFiles, Pushed};
use super::in_flight::{InFlight, Step};
use super::{Cut, EventSource};
use crate::error::{Error, Result};
use crate::machine::device::Device;
use crate::probes::events::{ENDS, EventProbes};
use crate::probes::{Stream, Teller, Told};

/// How long the requests in flight may be silent, at the end, before they are left alone.
const SILENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(2);

/// The attached probes' block events.
pub(crate) struct BpfEvents {
    stream: Stream<Events>,
    /// The probes of entries, if they tell of queued bios and completed requests.
    teller: Option<Teller>,
}

impl BpfEvents {
    /// Attaches the probes, into per-CPU files in `folder`. Those that were loaded without what `teller` tells need it.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub fn start(
        probes: &EventProbes<'_>,
        teller: Option<Teller>,
        device: &Device,
        folder: &Folder,
        is_cut: bool,
    ) -> Result<BpfEvents> {
        let events = Events {
            out: CpuFiles::new(folder, is_cut),
            device: device.dev,
            requests: InFlight::default(),
            ending: false,
        };
        if let Some(teller) = &teller {
            teller.begin(&probes.ring()?)?;
        }
        let stream = probes.attach(events, Events::take)?;
        Ok(BpfEvents { stream, teller })
    }

    fn end(&self, told: Told) -> Result<()> {
        let teller = self.teller.as_ref();
        teller.map_or(Ok(()), |teller| teller.end(told))
    }

    fn in_flight(&self) -> u64 {
        self.stream.sink().requests.count()
    }

    /// Follows the requests that were issued to their end, as long as there is one now and then.
    fn wait_for_ends(&mut self) -> Result<()> {
        let mut since = Instant::now();
        let mut left = self.in_flight();
        while left > 0 && since.elapsed() < SILENCE {
            sleep(TICK);
            self.stream.take_rest()?;
            if self.in_flight() < left {
                since = Instant::now();
            }
            left = self.in_flight();
        }
        Ok(())
    }
}

impl EventSource for BpfEvents {
    fn name(&self) -> &'static str {
        "bpf"
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        Some(self.stream.bell())
    }

    /// Its own thread empties the ring.
    fn rhythm(&self) -> Duration {
        Duration::MAX
    }

    fn poll(&mut self) -> Result<()> {
        self.stream.drain()?;
        self.stream.sink_mut().out.flush()
    }

    fn events(&self) -> u64 {
        self.stream.sink().out.events()
    }

    fn cut(&mut self, at_ns: u64, folder: &Folder) -> Result<Cut> {
        self.stream.sink_mut().out.keep_from(at_ns);
        self.stream.take_rest()?;
        self.stream.sink_mut().cut(folder)
    }

    fn unfinished(&self) -> Option<u64> {
        Some(self.in_flight())
    }

    /// First nothing new is recorded any more, then what was issued before has time to complete.
    fn stop(&mut self) -> Result<()> {
        self.stream.sink_mut().ending = true;
        self.end(Told::Queued)?;
        self.stream.finish_but(&ENDS)?;
        self.wait_for_ends()?;
        self.end(Told::Completed)?;
        self.stream.finish()?;
        self.stream.sink_mut().out.flush()
    }

    /// Counted with the probes' own.
    fn losses(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
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
const PDU_MAX: usize = 16;

/// What becomes of the probes' records.
struct Events {
    out: CpuFiles,
    device: u32,
    requests: InFlight,
    /// Completions of what was issued when nobody listened any more are left out.
    ending: bool,
}

impl Events {
    fn cut(&mut self, folder: &Folder) -> Result<Cut> {
        let mut cut = self.out.cut(folder)?;
        let before = std::mem::replace(&mut self.requests, cut.requests.clone());
        cut.unfinished = Some(before.count());
        for pushed in self.out.take_next() {
            if let Pushed::Record { record, .. } = &pushed
                && let Decoded::Record(event, _) = decode(record)
            {
                self.requests.step(Step::of(&event));
            }
            self.out.push_again(pushed)?;
        }
        self.out.flush()?;
        Ok(cut)
    }

    fn take(&mut self, data: &[u8]) -> Result<()> {
        let malformed = || Error::bpf("malformed block record");
        let (event, pdu) = BlockRecord::read_from_prefix(data).map_err(|_| malformed())?;
        let (cpu, action) = (u32::from(event.cpu), u64::from(event.action));
        if is_note(action) {
            return self.out.name(cpu, event.pid, event.time, pdu);
        }
        let step = Step {
            action,
            sector: event.sector,
            bytes: event.bytes,
        };
        if !self.out.keeps_back(event.time) && !self.requests.step(step) && self.ending {
            return Ok(());
        }
        let mut record = [0; HEAD + PDU_MAX];
        let len = HEAD + pdu.len();
        record[..HEAD].copy_from_slice(self.head(&event, pdu.len()).as_bytes());
        if !pdu.is_empty() {
            let behind = record.get_mut(HEAD..len).ok_or_else(malformed)?;
            behind.copy_from_slice(pdu);
        }
        self.out.push(cpu, event.pid, &record[..len])
    }

    /// Its sequence number is filled in later.
    fn head(&self, event: &BlockRecord, pdu_len: usize) -> BlkIoTrace<LE> {
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
            device: self.device.into(),
            cpu: u32::from(event.cpu).into(),
            error: event.error.into(),
            pdu_len: (pdu_len as u16).into(),
        }
    }
}
