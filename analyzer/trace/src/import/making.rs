// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes what a reader finds into a bundle.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::fs::File;
use std::io::{self, BufWriter, Write};

use foldhash::fast::RandomState;
use mostrace_bundle::blk_io_trace::action::{BLK_TC_FS, BLK_TC_NOTIFY, ta, tn};
use mostrace_bundle::blk_io_trace::{Event, Layout, Version, encode};
use mostrace_bundle::entry::{
    Flags, NONE, RawComm, RawHead, RawProcess, Stage, TYPE_COMM, TYPE_FILE, TYPE_PROCESS,
    UNKNOWN_ID,
};
use mostrace_bundle::table::TableWriter;
use mostrace_bundle::tracepoints::{Bio, Fields, Follower, Moment, Tells, Thread};
use mostrace_bundle::{Writer, layout};
use zerocopy::IntoBytes;

use super::processes::Processes;
use super::seen::{OfProcess, Seen, Submitter, Taker};
use super::survey::Target;

/// The most CPUs, each of which has an open file.
const CPUS: u32 = 512;
/// The most threads whose names are remembered; after that all are noted again.
const MANY_NAMES: usize = 1 << 16;
/// The most events that wait to be put in order.
const WAITING: usize = 1 << 17;

/// Only this version tells zeroes from writes.
const V8: Layout = Layout {
    version: Version::V8,
    big_endian: false,
};

/// The time of an event, its place in the text, and its record.
type Waiting = (u64, u64, Box<[u8]>);

/// A bundle's tables while a foreign trace is read.
pub(super) struct Making<'a> {
    to: &'a Writer,
    target: &'a Target,
    known: &'a Processes,
    files: BTreeMap<u32, BufWriter<File>>,
    processes: TableWriter,
    file_entries: TableWriter,
    /// Names of processes, once one is told: no table says that none is.
    comms: Option<TableWriter>,
    /// Follows the events that tell of files and processes, if the text has such.
    follower: Option<Follower>,
    /// The name that was last noted for each thread.
    noted: HashMap<u32, Box<[u8]>, RandomState>,
    /// The events of a kind that is not in order, earliest first, with their place in the text.
    waiting: Option<BinaryHeap<Reverse<Waiting>>>,
    record: Vec<u8>,
    last_ns: u64,
    /// The first error of what cannot fail where it is told.
    failed: Option<io::Error>,
    pub made: Made,
}

/// What was written.
#[derive(Clone, Debug, Default)]
pub(super) struct Made {
    pub events: u64,
    pub entries: u64,
    pub file_entries: u64,
    pub comms: u64,
    /// Runs of blocks that were forgotten for lack of room.
    pub forgotten: u64,
    pub completed: u64,
    /// Events that are too far out of order.
    pub late: u64,
    /// The time of the first event and of the last one.
    pub span_ns: Option<(u64, u64)>,
    pub lost: Option<u64>,
    pub lost_uncounted: bool,
    /// A moment of the trace's clock, and the same by the wall clock.
    pub wall_clock: Option<(u64, u64)>,
}

impl Making<'_> {
    pub fn begin<'a>(
        to: &'a Writer,
        target: &'a Target,
        known: &'a Processes,
        is_unordered: bool,
    ) -> io::Result<Making<'a>> {
        let follows = target.volume.is_some() || !known.is_empty();
        // A node's place is counted in pages, which f2fs has as its blocks.
        let follower = || {
            let volume = target.volume.clone();
            let page_size = volume.as_ref().map_or(0, |volume| volume.block_size());
            Follower::new(target.device, 0..u64::MAX, volume, page_size)
        };
        Ok(Making {
            to,
            target,
            known,
            files: BTreeMap::new(),
            processes: table(to, layout::PROCESS)?,
            file_entries: table(to, layout::FILE)?,
            comms: None,
            follower: follows.then(follower),
            noted: HashMap::default(),
            waiting: is_unordered.then(BinaryHeap::new),
            record: Vec::new(),
            last_ns: 0,
            failed: None,
            made: Made::default(),
        })
    }

    /// Writes what waits.
    pub fn end(mut self) -> io::Result<Made> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        while let Some(Reverse((time_ns, _, record))) =
            self.waiting.as_mut().and_then(BinaryHeap::pop)
        {
            self.write_ordered(time_ns, &record)?;
        }
        for file in self.files.values_mut() {
            file.flush()?;
        }
        self.processes.flush()?;
        if let Some(comms) = &mut self.comms {
            comms.flush()?;
        }
        self.file_entries.flush()?;
        self.made.forgotten = self.follower.as_ref().map_or(0, Follower::forgotten);
        Ok(self.made)
    }

    /// Returns the event as the bundle has it; None if it is another device's, or superseded by a later one.
    fn chosen<'s>(&self, seen: &Seen<'s>) -> Option<Seen<'s>> {
        let target = self.target;
        if !target.has(seen.device) {
            return None;
        }
        if target.completes_at == ta::COMPLETE {
            return Some(*seen);
        }
        // Nothing completes: the last that is known of a request stands for its end, without its times.
        let by = seen.comm.map(|comm| Submitter {
            pid: seen.pid,
            comm,
        });
        (seen.stage == target.completes_at).then(|| Seen {
            stage: ta::COMPLETE,
            categories: seen.categories | BLK_TC_FS,
            // Who issues a request need not have queued its bios.
            by: by.filter(|_| target.completes_at == ta::QUEUE),
            comm: None,
            ..*seen
        })
    }

    fn put(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        let cut_at = seen.cut_at.map(u64::to_be_bytes);
        let event = Event {
            time_ns: seen.time_ns,
            sector: seen.sector,
            action: seen.stage | seen.categories,
            bytes: seen.bytes,
            pid: seen.pid,
            device: self.target.device,
            cpu: seen.cpu,
            error: seen.error,
            pdu: cut_at.as_ref().map_or(&[][..], |cut_at| &cut_at[..]),
            ..Event::default()
        };
        if let Some(comm) = seen.comm {
            self.note(&event, comm)?;
        }
        self.made.events = self.made.events.saturating_add(1);
        if seen.stage == ta::COMPLETE {
            self.made.completed = self.made.completed.saturating_add(1);
        }
        let (first, last) = self.made.span_ns.unwrap_or((seen.time_ns, seen.time_ns));
        self.made.span_ns = Some((first.min(seen.time_ns), last.max(seen.time_ns)));
        self.write(&event)
    }

    /// Notes the name of the event's thread, unless it is known.
    fn note(&mut self, event: &Event<'_>, comm: &[u8]) -> Result<(), String> {
        if self
            .noted
            .get(&event.pid)
            .is_some_and(|known| **known == *comm)
        {
            return Ok(());
        }
        if self.noted.len() >= MANY_NAMES {
            self.noted.clear();
        }
        self.noted.insert(event.pid, comm.into());
        self.write(&Event {
            time_ns: event.time_ns,
            action: BLK_TC_NOTIFY | tn::PROCESS,
            pid: event.pid,
            cpu: event.cpu,
            pdu: comm,
            ..Event::default()
        })
    }

    fn write(&mut self, event: &Event<'_>) -> Result<(), String> {
        let mut record = std::mem::take(&mut self.record);
        record.clear();
        encode(event, V8, &mut record).map_err(|error| error.to_string())?;
        let written = match &mut self.waiting {
            None => self.append(event.cpu, &record),
            Some(waiting) => {
                let place = self.made.events;
                waiting.push(Reverse((event.time_ns, place, record.clone().into())));
                match waiting.len() > WAITING {
                    true => match waiting.pop() {
                        Some(Reverse((time_ns, _, first))) => self
                            .write_ordered(time_ns, &first)
                            .map_err(|e| e.to_string()),
                        None => Ok(()),
                    },
                    false => Ok(()),
                }
            }
        };
        self.record = record;
        written
    }

    /// Writes an event of a kind that is not in order; these have no CPU.
    fn write_ordered(&mut self, time_ns: u64, record: &[u8]) -> io::Result<()> {
        if time_ns < self.last_ns {
            self.made.late = self.made.late.saturating_add(1);
        }
        self.last_ns = self.last_ns.max(time_ns);
        self.append(0, record).map_err(io::Error::other)
    }

    fn append(&mut self, cpu: u32, record: &[u8]) -> Result<(), String> {
        if !self.files.contains_key(&cpu) {
            if cpu >= CPUS {
                return Err(format!("CPU {cpu}, and at most {CPUS} are imported"));
            }
            let name = layout::trace_of_cpu(cpu);
            let file = self.to.folder().create(name).map_err(|e| e.to_string())?;
            self.files
                .insert(cpu, BufWriter::with_capacity(32 << 10, file));
        }
        match self.files.get_mut(&cpu) {
            Some(file) => file.write_all(record).map_err(|e| e.to_string()),
            None => Ok(()),
        }
    }

    /// Writes the entries of a bio.
    fn queued(&mut self, seen: &Seen<'_>) -> io::Result<()> {
        let volume = self.target.volume.as_ref();
        let is_its = volume.is_some_and(|volume| volume.dev == seen.device);
        let Some(follower) = self
            .follower
            .as_mut()
            .filter(|_| is_its || self.target.has(seen.device))
        else {
            return Ok(());
        };
        let comm = seen.comm.unwrap_or_default();
        let bio = Bio {
            dev: seen.device,
            pid: seen.pid,
            sector: seen.sector,
            sectors: u64::from(seen.bytes) / 512,
            categories: seen.categories,
            comm: comm.to_vec(),
        };
        let (tgid, uid) = identity(self.known, seen.pid, seen.tgid);
        let thread = |bio: &Bio| Thread {
            pid: bio.pid,
            tgid,
            uid,
            comm: name(comm),
            is_kernels: false,
            queued_ns: seen.time_ns,
        };
        let at = Moment {
            time_ns: seen.time_ns,
            cpu: seen.cpu,
        };
        let (made, tables) = (
            &mut self.made,
            (&mut self.processes, &mut self.file_entries),
        );
        follower.queue(at, &bio, thread, |entry| {
            let is_file = entry.starts_with(&TYPE_FILE.to_le_bytes());
            let (table, count) = match is_file {
                true => (&mut *tables.1, &mut made.file_entries),
                false => (&mut *tables.0, &mut made.entries),
            };
            *count = count.saturating_add(1);
            table.push(entry)
        })
    }

    /// Writes the entry of a request whose submitter no Q tells.
    fn entry(&mut self, seen: &Seen<'_>, by: Submitter<'_>) -> io::Result<()> {
        let comm = name(by.comm);
        let (tgid, uid) = identity(self.known, by.pid, None);
        let entry = RawProcess {
            head: RawHead {
                kind: TYPE_PROCESS.into(),
                size: u16::try_from(size_of::<RawProcess>()).unwrap_or(0).into(),
                dev: self.target.device.into(),
                time_ns: seen.time_ns.into(),
                sector: seen.sector.into(),
                bytes: seen.bytes.into(),
                cpu: u16::try_from(seen.cpu).unwrap_or(0).into(),
                stage: Stage::ISSUE,
                ..RawHead::default()
            },
            home_sector: NONE.into(),
            pid: by.pid.into(),
            tgid: tgid.into(),
            uid: uid.into(),
            comm,
            ..RawProcess::default()
        };
        self.made.entries = self.made.entries.saturating_add(1);
        self.processes.push(entry.as_bytes())
    }
}

/// Creates a table.
fn table(to: &Writer, name: &str) -> io::Result<TableWriter> {
    let file = to.folder().create(name).map_err(io::Error::other)?;
    TableWriter::new(file)
}

/// Returns the process of a thread and its user. `tgid` is the process that the event has.
fn identity(known: &Processes, thread: u32, tgid: Option<u32>) -> (u32, u32) {
    let tgid = tgid.or_else(|| known.of(thread));
    let uid = tgid.and_then(|tgid| known.user(tgid));
    (tgid.unwrap_or(UNKNOWN_ID), uid.unwrap_or(UNKNOWN_ID))
}

/// Returns a name as entries have it.
fn name(of: &[u8]) -> [u8; 16] {
    let mut comm = [0; 16];
    for (to, from) in comm.iter_mut().take(15).zip(of) {
        *to = *from;
    }
    comm
}

impl Making<'_> {
    /// Writes the name of a process.
    fn comm(&mut self, time_ns: u64, tgid: u32, comm: &[u8], how: Flags) -> io::Result<()> {
        let comms = match &mut self.comms {
            Some(comms) => comms,
            None => self.comms.insert(table(self.to, layout::COMM)?),
        };
        let entry = RawComm {
            head: RawHead {
                kind: TYPE_COMM.into(),
                size: u16::try_from(size_of::<RawComm>()).unwrap_or(0).into(),
                dev: self.target.device.into(),
                time_ns: time_ns.into(),
                sector: NONE.into(),
                flags: how,
                ..RawHead::default()
            },
            tgid: tgid.into(),
            comm: name(comm),
            ..RawComm::default()
        };
        self.made.comms = self.made.comms.saturating_add(1);
        comms.push(entry.as_bytes())
    }
}

impl Taker for Making<'_> {
    fn process(&mut self, told: OfProcess<'_>) {
        if let OfProcess::Name {
            time_ns,
            thread,
            name,
            how,
        } = told
            && self.known.of(thread) == Some(thread)
        {
            let written = self.comm(time_ns, thread, name, how);
            self.failed = self.failed.take().or(written.err());
        }
    }

    fn told(&mut self, tells: Tells, dev: Option<u32>, fields: &dyn Fields) {
        let Some(volume) = &self.target.volume else {
            return;
        };
        let tells = match tells {
            Tells::Path if self.target.several_filesystems => Tells::PathOfSome,
            tells => tells,
        };
        if let Some(follower) = self
            .follower
            .as_mut()
            .filter(|_| dev.is_none_or(|dev| dev == volume.dev))
        {
            follower.take(tells, fields);
        }
    }

    fn event(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        if seen.stage == ta::QUEUE {
            self.queued(seen).map_err(|error| error.to_string())?;
        }
        let Some(seen) = self.chosen(seen) else {
            return Ok(());
        };
        if let Some(by) = seen.by {
            self.entry(&seen, by).map_err(|error| error.to_string())?;
        }
        self.put(&seen)
    }

    fn lost(&mut self, events: Option<u64>) {
        match events {
            Some(_) => self.made.lost = events,
            None => self.made.lost_uncounted = true,
        }
    }

    fn wall_clock(&mut self, time_ns: u64, unix_ns: u64) {
        self.made.wall_clock.get_or_insert((time_ns, unix_ns));
    }
}
