// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events of ftrace in a trace of Perfetto, a protobuf message of packets:
//! <https://perfetto.dev/docs/reference/trace-packet-proto>.
//!
//! ```text
//! packets ──→ ftrace_events ──→ Sorter ──→ Kinds: fields by name ──→ requests, files, tasks
//!        ├──→ process_tree, packages_list, clock_snapshot
//!        └──→ ftrace_stats, lost_events ──→ losses
//! ```
//! Times are ns of the boot time, unless a bundle names another clock. Sectors have 512 bytes.

mod events;
mod order;
mod packets;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::path::Path;

use flate2::read::ZlibDecoder;
use foldhash::fast::RandomState;
use mostrace_bundle::entry::Flags;
use mostrace_bundle::tracepoints::Fields;

pub(super) use packets::begins;

use super::requests::{Place, Shape};
use super::sched::{Named, Sched, named};
use super::seen::{OfProcess, Reader, Remap, Seen, Taker};
use super::{Error, Rest};
use events::{Event, Good, Kinds};
use order::{Sorter, Waiting};
use packets::{LONGEST, Next, Packets};
use wire::{Message, Value};

/// Fields of TracePacket.
mod packet {
    pub const FTRACE_EVENTS: u32 = 1;
    pub const PROCESS_TREE: u32 = 2;
    pub const CLOCK_SNAPSHOT: u32 = 6;
    pub const TRUSTED_SEQUENCE: u32 = 10;
    pub const FTRACE_STATS: u32 = 34;
    pub const PREVIOUS_DROPPED: u32 = 42;
    pub const PACKAGES_LIST: u32 = 47;
    pub const COMPRESSED: u32 = 50;
}

/// The most CPUs whose losses are counted, and the most sequences of packets.
const MANY: usize = 1 << 12;

/// Numbers of BuiltinClock.
const REALTIME: u64 = 1;
const BOOTTIME: u64 = 6;

#[derive(Default)]
pub(super) struct Perfetto {
    kinds: Kinds,
    order: Sorter,
    place: u64,
    losses: Losses,
    /// True if events have another clock than the boot time.
    has_other_clock: bool,
}

/// What the trace says that it lost.
#[derive(Default)]
struct Losses {
    /// The events that a CPU's buffer had lost at the beginning of the trace, and at its end.
    of_cpus: BTreeMap<u64, (Option<u64>, u64)>,
    /// Something is said to be lost, without a number.
    is_lossy: bool,
    /// The sequences of packets that had events.
    sequences: HashSet<u64, RandomState>,
}

impl Losses {
    /// Takes FtraceStats: { phase = 1; cpu_stats = 2: { cpu = 1; overrun = 3; commit_overrun = 4; dropped_events = 8 } }
    fn stats(&mut self, stats: Message<'_>) {
        const START: u64 = 1;
        let is_start = stats.number(1) == Some(START);
        self.is_lossy |= stats.number(9).is_some();
        for cpu in stats.all(2) {
            let lost = [3, 4, 8].map(|field| cpu.number(field).unwrap_or(0));
            let lost = lost.into_iter().fold(0, u64::saturating_add);
            let number = cpu.number(1).unwrap_or(0);
            if self.of_cpus.len() >= MANY && !self.of_cpus.contains_key(&number) {
                continue;
            }
            let known = self.of_cpus.entry(number).or_default();
            match is_start {
                true => known.0 = known.0.or(Some(lost)),
                false => known.1 = known.1.max(lost),
            }
        }
    }

    /// Takes a packet that has events: whether packets ahead of it were dropped.
    fn packet(&mut self, packet: Message<'_>) {
        let sequence = packet.number(packet::TRUSTED_SEQUENCE).unwrap_or(0);
        // A trace that keeps its latest part begins behind something.
        let is_first = self.sequences.len() < MANY && self.sequences.insert(sequence);
        let dropped = packet.number(packet::PREVIOUS_DROPPED).unwrap_or(0);
        self.is_lossy |= dropped != 0 && !is_first;
    }

    /// Passes on what was lost so far.
    fn tell(&self, to: &mut dyn Taker) {
        let counts = self.of_cpus.values();
        let lost = counts.map(|(start, end)| end.saturating_sub(start.unwrap_or(0)));
        let lost = lost.fold(0, u64::saturating_add);
        match (lost, self.is_lossy) {
            (0, true) => to.lost(None),
            _ if self.of_cpus.is_empty() => {}
            _ => to.lost(Some(lost)),
        }
    }
}

impl Reader for Perfetto {
    fn file(&mut self, path: &Path, to: &mut dyn Taker, rest: &mut Rest) -> Result<(), Error> {
        let failed = |source| Error::Io {
            path: path.to_owned(),
            source,
        };
        let mut packets = Packets::open(path).map_err(failed)?;
        loop {
            let next = packets.next().map_err(failed)?;
            let read = match next {
                None => Err("no packet begins here".to_owned()),
                Some(Next::Packet(packet)) => self.packet(packet, true, to),
                Some(Next::Skipped) => {
                    rest.long_packets = rest.long_packets.saturating_add(1);
                    Ok(())
                }
                Some(Next::Cut) => {
                    rest.cut.push(path.to_owned());
                    break;
                }
                Some(Next::End) => break,
            };
            read.map_err(|what| Error::Byte {
                path: path.to_owned(),
                at: packets.at,
                what,
            })?;
        }
        self.end(to).map_err(|what| Error::Device {
            path: path.to_owned(),
            what,
        })?;
        rest.late = rest.late.max(self.order.late);
        Ok(())
    }
}

impl Perfetto {
    /// Reads a packet. Packets may be compressed, but not twice.
    fn packet(
        &mut self,
        packet: Message<'_>,
        may_inflate: bool,
        to: &mut dyn Taker,
    ) -> Result<(), String> {
        for field in packet {
            let (number, Value::Bytes(bytes)) = field? else {
                continue;
            };
            let message = Message(bytes);
            match number {
                packet::FTRACE_EVENTS => {
                    self.losses.packet(packet);
                    self.bundle(message, to)?;
                }
                packet::PROCESS_TREE => tree(message, to),
                packet::PACKAGES_LIST => packages(message, to),
                packet::FTRACE_STATS => self.losses.stats(message),
                packet::CLOCK_SNAPSHOT if !self.has_other_clock => clocks(message, to),
                packet::COMPRESSED if may_inflate => self.compressed(bytes, to)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads packets that zlib compressed: a Trace of them.
    fn compressed(&mut self, bytes: &[u8], to: &mut dyn Taker) -> Result<(), String> {
        let mut inflated = Vec::new();
        let read = ZlibDecoder::new(bytes)
            .take(LONGEST.saturating_add(1))
            .read_to_end(&mut inflated);
        read.map_err(|_| "compressed packets are damaged")?;
        if inflated.len() as u64 > LONGEST {
            return Err(format!("compressed packets have more than {LONGEST} bytes"));
        }
        for field in Message(&inflated) {
            if let (1, Value::Bytes(packet)) = field? {
                self.packet(Message(packet), false, to)?;
            }
        }
        Ok(())
    }

    /// Reads FtraceEventBundle: { cpu = 1; event = 2; lost_events = 3; ftrace_clock = 5; error = 8; generic_event_descriptors = 11 }
    fn bundle(&mut self, bundle: Message<'_>, to: &mut dyn Taker) -> Result<(), String> {
        let mut cpu = 0;
        for field in bundle {
            match field? {
                (1, Value::Number(number)) => {
                    cpu = u32::try_from(number).map_err(|_| format!("CPU {number}"))?;
                }
                (3, Value::Number(1)) | (8, Value::Bytes(_)) => self.losses.is_lossy = true,
                (5, Value::Number(1..)) => self.has_other_clock = true,
                (11, Value::Bytes(bytes)) => {
                    self.kinds.describe(Message(bytes));
                }
                _ => {}
            }
        }
        for event in bundle.all(2) {
            if let Some(event) = self.event(cpu, event)? {
                self.order.push(event);
            }
            while let Some(first) = self.order.pop_surplus() {
                self.pass(&first, to)?;
            }
        }
        Ok(())
    }

    /// Reads FtraceEvent: { timestamp = 1; pid = 2; the event under its own number }; None if it is good for nothing.
    fn event(&mut self, cpu: u32, event: Message<'_>) -> Result<Option<Waiting>, String> {
        let (mut time_ns, mut thread, mut what) = (0, 0, None);
        for field in event {
            match field? {
                (1, Value::Number(number)) => time_ns = number,
                // It is signed in old versions of the format.
                (2, Value::Number(pid)) => thread = u32::try_from(pid).unwrap_or(0),
                (number, Value::Bytes(bytes)) => what = Some((number, bytes)),
                _ => {}
            }
        }
        let what =
            what.filter(|(number, bytes)| self.kinds.good(*number, Message(bytes)).is_some());
        Ok(what.map(|(number, bytes)| {
            self.place = self.place.saturating_add(1);
            Waiting {
                time_ns,
                place: self.place,
                cpu,
                thread,
                number,
                message: bytes.into(),
            }
        }))
    }

    /// Passes on an event whose turn it is.
    fn pass(&self, of: &Waiting, to: &mut dyn Taker) -> Result<(), String> {
        let message = Message(&of.message);
        let event = self.kinds.event(of.thread, of.number, message);
        match self.kinds.good(of.number, message) {
            Some(Good::Request(shape)) => {
                let seen =
                    request(of, shape, &event).ok_or("an event of a request lacks fields")?;
                to.event(&seen?)?;
            }
            Some(Good::Remap) => {
                if let Some(remap) = remap(&event) {
                    to.remap(remap);
                }
            }
            Some(Good::File(tells)) => to.told(tells, event.device("dev"), &event),
            Some(Good::Task(sched)) => {
                if let Some(task) = task(sched, &event) {
                    sched.tell(of.time_ns, None, task, to);
                }
            }
            None => {}
        }
        Ok(())
    }

    /// Passes on what waits.
    fn end(&mut self, to: &mut dyn Taker) -> Result<(), String> {
        while let Some(first) = self.order.pop() {
            self.pass(&first, to)?;
        }
        self.losses.tell(to);
        Ok(())
    }
}

fn request<'a>(of: &Waiting, shape: Shape, event: &Event<'a>) -> Option<Result<Seen<'a>, String>> {
    let error = || {
        let error = event.signed("error").or_else(|| event.signed("errors"));
        u16::try_from(error.unwrap_or(0).unsigned_abs()).ok()
    };
    let seen = Seen {
        time_ns: of.time_ns,
        cpu: of.cpu,
        pid: of.thread,
        device: event.device("dev")?,
        error: if shape.has_error() { error()? } else { 0 },
        comm: event.bytes("comm").filter(|_| !shape.has_error()),
        ..Seen::default()
    };
    let extent = event
        .number("nr_sector")
        .or_else(|| event.number("new_sector"));
    let place = Place {
        rwbs: event.bytes("rwbs").unwrap_or_default(),
        sector: event.number("sector")?,
        extent: extent?,
        command: if shape.has_bytes {
            event.number("bytes")?
        } else {
            0
        },
    };
    shape.seen(seen, place)
}

fn remap(event: &Event<'_>) -> Option<Remap> {
    Some(Remap {
        from: event.device("old_dev")?,
        from_sector: event.number("old_sector")?,
        to: event.device("dev")?,
        to_sector: event.number("sector")?,
    })
}

fn task<'a>(sched: Sched, event: &Event<'a>) -> Option<Named<'a>> {
    let (thread, name) = match sched {
        Sched::Exec => ("pid", "filename"),
        Sched::Fork => ("child_pid", "child_comm"),
        Sched::NewTask => ("pid", "comm"),
        Sched::Rename => ("pid", "newcomm"),
    };
    Some(Named {
        thread: event.short(thread)?,
        name: event.bytes(name)?,
        clone_flags: match sched {
            Sched::NewTask => event.number("clone_flags")?,
            _ => 0,
        },
    })
}

/// Reads ProcessTree: { processes = 1: { pid = 1; cmdline = 3; uid = 5 }; threads = 2: { tid = 1; tgid = 3 } }
fn tree(tree: Message<'_>, to: &mut dyn Taker) {
    let id = |of: Message<'_>, field| u32::try_from(of.number(field)?).ok();
    for of in tree.all(1) {
        let Some(process) = id(of, 1) else { continue };
        let thread = process;
        to.process(OfProcess::Thread { thread, process });
        if let Some(user) = id(of, 5) {
            to.process(OfProcess::User { process, user });
        }
        // It was read at some time of the trace.
        let command = of.all(3).next().unwrap_or_default();
        named(0, process, comm(command.0), Flags::default(), to);
    }
    for of in tree.all(2) {
        if let (Some(thread), Some(process)) = (id(of, 1), id(of, 3)) {
            to.process(OfProcess::Thread { thread, process });
        }
    }
}

/// Returns the name that the kernel has for a command: the beginning of its file's name, or the end of an app's.
fn comm(command: &[u8]) -> &[u8] {
    const LONGEST: usize = 15;
    match command.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => command.get(slash.saturating_add(1)..).unwrap_or_default(),
        None => {
            let from = command.len().saturating_sub(LONGEST);
            command.get(from..).unwrap_or_default()
        }
    }
}

/// Reads PackagesList: { packages = 1: { name = 1; uid = 2 } }
fn packages(list: Message<'_>, to: &mut dyn Taker) {
    for of in list.all(1) {
        let user = of.number(2).and_then(|uid| u32::try_from(uid).ok());
        if let (Some(name), Some(user)) = (of.bytes(1), user) {
            to.process(OfProcess::Package { name, user });
        }
    }
}

/// Reads ClockSnapshot: { clocks = 1: { clock_id = 1; timestamp = 2 } }
fn clocks(snapshot: Message<'_>, to: &mut dyn Taker) {
    let of = |wanted| {
        let mut all = snapshot.all(1);
        all.find(|clock| clock.number(1) == Some(wanted))?.number(2)
    };
    if let (Some(boot_ns), Some(unix_ns)) = (of(BOOTTIME), of(REALTIME)) {
        to.wall_clock(boot_ns, unix_ns);
    }
}
