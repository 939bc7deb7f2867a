// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the events as `blkparse -i` does by default, without its summary:
//!
//! ```text
//! device   cpu  sequence  seconds.ns        pid  action rwbs  the rest, by action
//!   7,1      0         2     0.000000000   9548  Q      WS    299008 + 8 [mostrace]
//! ```
//!
//! Times are relative to the first event. A pid has the first name that was noted for it, because blkparse keeps no other.

use mostrace_bundle::DeviceNumber;
use std::collections::HashMap;
use std::fmt::{self, Display};
use std::io::{self, BufWriter, Write};

use mostrace_bundle::blk_io_trace::action::{BLK_TA_CGROUP, BLK_TC_PC, letter, ta, tn};

use super::error::Error;
use super::left_out::counted;
use crate::facts::{Key, hashed};
use mostrace_trace::blktrace::{Event, ThreadNames, Trace, rwbs};
use mostrace_trace::output::Output;
use mostrace_trace::recording::{self, Recording};
use mostrace_trace::tally::Tally;
use mostrace_trace::text::escape;

/// Writes the events; returns lines about missing events and events without a line. With a key, the names of processes are
/// hashed, and messages, which may contain names, are left out. The events are read twice, because a name may be noted after
/// the first event of its pid.
///
/// # Errors
/// Returns an error if the events cannot be read or the output cannot be written.
pub fn write(
    recording: &Recording,
    key: Option<&Key>,
    out: &mut Output,
) -> Result<Vec<String>, Error> {
    let comms = comms(recording.events()?, key)?;
    let mut left_out = LeftOut::default();
    let mut trace = recording.events()?;
    let printed = print(&mut trace, &comms, key.is_some(), out, &mut left_out);
    match printed {
        // The output knows which file it was.
        Err(Error::Io(error)) => out.end(Err(error))?,
        Err(other) => return Err(other),
        Ok(()) => out.end(Ok::<(), io::Error>(()))?,
    }
    let [missing, told] = recording.told(trace.notices());
    Ok([missing, told, left_out.words()].concat())
}

type Comms = HashMap<u32, String, foldhash::fast::RandomState>;

fn comms(mut trace: Trace, key: Option<&Key>) -> Result<Comms, Error> {
    let mut names = ThreadNames::default();
    while let Some(event) = trace.next().map_err(recording::Error::from)? {
        names.push(&event);
    }
    let shown = |comm: &str| match key {
        Some(key) => escape(&hashed(key, comm.as_bytes())),
        None => escape(comm.as_bytes()),
    };
    let first = |(pid, names): (u32, &[(u64, Box<str>)])| {
        let (_, comm) = names.first()?;
        Some((pid, shown(comm)))
    };
    Ok(names.iter().filter_map(first).collect())
}

#[derive(Default)]
struct LeftOut {
    without_line: u64,
    hidden: u64,
}

impl LeftOut {
    fn words(&self) -> Vec<String> {
        let kind = "events are of a kind that blkparse prints no line for";
        let names = "messages are left out, as they may hold names";
        counted(&[(self.without_line, kind), (self.hidden, names)])
    }
}

fn print(
    trace: &mut Trace,
    comms: &Comms,
    hide: bool,
    out: &mut Output,
    left_out: &mut LeftOut,
) -> Result<(), Error> {
    let mut out = BufWriter::new(out);
    let mut start_ns = None;
    while let Some(event) = trace.next().map_err(recording::Error::from)? {
        if event.is_note() && event.act() != tn::MESSAGE {
            continue;
        }
        let start_ns = *start_ns.get_or_insert(event.time_ns);
        let since_ns = event.time_ns.saturating_sub(start_ns);
        match letter(event.action).filter(|_| has_line(&event)) {
            Some("m") if hide => left_out.hidden.tally(1),
            Some("m") => message(&event, since_ns, &mut out)?,
            Some(letter) => block_event(&event, letter, since_ns, comms, &mut out)?,
            None => left_out.without_line.tally(1),
        }
    }
    Ok(out.flush()?)
}

/// Returns true if blkparse prints a line for the event: it skips events without a category, most actions of passthrough
/// requests, and events that lack the payload their line needs.
fn has_line(event: &Event<'_>) -> bool {
    use ta::{COMPLETE, GETRQ, INSERT, ISSUE, QUEUE, REQUEUE, SLEEPRQ};
    const OF_PASSTHROUGH: [u64; 7] = [QUEUE, GETRQ, SLEEPRQ, REQUEUE, ISSUE, COMPLETE, INSERT];
    if event.is_note() {
        return !event.pdu.is_empty();
    }
    if event.action & BLK_TC_PC != 0 {
        return OF_PASSTHROUGH.contains(&event.act());
    }
    let complete = match event.act() {
        ta::UNPLUG_IO | ta::UNPLUG_TIMER => event.unplugged().is_some(),
        ta::SPLIT => event.split_at().is_some(),
        ta::REMAP => event.remap().is_some(),
        _ => true,
    };
    complete && event.action >> 16 != 0
}

/// Writes the beginning of each line, up to the pid.
fn head(
    device: u32,
    sequence: i32,
    event: &Event<'_>,
    since_ns: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    let DeviceNumber { major, minor } = DeviceNumber::of(device);
    let (seconds, ns) = (since_ns / 1_000_000_000, since_ns % 1_000_000_000);
    let (cpu, pid) = (event.cpu, event.pid);
    write!(
        out,
        "{major:>3},{minor:<3} {cpu:>2} {sequence:>8} {seconds:>5}.{ns:09} {pid:>5} "
    )
}

fn message(event: &Event<'_>, since_ns: u64, out: &mut impl Write) -> io::Result<()> {
    head(event.device, 0, event, since_ns, out)?;
    if event.action & BLK_TA_CGROUP != 0 {
        let (low, high) = (event.cgroup & 0xffff_ffff, event.cgroup >> 32);
        let (inode, generation) = if event.big_endian {
            (high, low)
        } else {
            (low, high)
        };
        write!(out, "{inode:x},{generation:x} ")?;
    }
    let text = event.pdu.split(|&b| b == 0).next().unwrap_or_default();
    writeln!(out, " m   N {}", escape(text))
}

fn block_event(
    event: &Event<'_>,
    letter: &str,
    since_ns: u64,
    comms: &Comms,
    out: &mut impl Write,
) -> io::Result<()> {
    // A remap is printed for its target device.
    let remap = event.remap();
    let device = remap.map_or(event.device, |remap| remap.device_to);
    head(device, event.sequence.cast_signed(), event, since_ns, out)?;
    write!(out, "{letter:>2} {:>3} ", rwbs(event.action, event.bytes))?;
    let comm = comms.get(&event.pid).map_or("(null)", String::as_str);
    let (sector, sectors, error) = (event.sector, event.bytes / 512, event.error);
    let passthrough = event.action & BLK_TC_PC != 0;
    match event.act() {
        ta::REQUEUE if passthrough => writeln!(out, "[{error}]"),
        ta::COMPLETE if passthrough => writeln!(out, "{}[{error}]", Dump(event)),
        ta::QUEUE if passthrough => writeln!(out, "{} [{comm}]", event.bytes),
        ta::ISSUE | ta::INSERT if passthrough => {
            writeln!(out, "{} {}[{comm}]", event.bytes, Dump(event))
        }
        ta::REQUEUE | ta::COMPLETE if sectors > 0 => {
            writeln!(out, "{sector} + {sectors} [{error}]")
        }
        ta::REQUEUE | ta::COMPLETE => writeln!(out, "{sector} [{error}]"),
        ta::PLUG => writeln!(out, "[{comm}]"),
        _ => match (remap, event.split_at(), event.unplugged()) {
            (Some(remap), ..) => {
                let DeviceNumber { major, minor } = DeviceNumber::of(remap.device_from);
                let from = remap.sector_from;
                writeln!(out, "{sector} + {sectors} <- ({major},{minor}) {from}")
            }
            (_, Some(cut), _) => writeln!(out, "{sector} / {cut} [{comm}]"),
            (.., Some(requests)) => writeln!(out, "[{comm}] {requests}"),
            // These are queued, merged, inserted, issued …
            _ if sectors > 0 => writeln!(out, "{sector} + {sectors} [{comm}]"),
            _ => writeln!(out, "[{comm}]"),
        },
    }
}

/// A command in hexadecimal followed by a blank; trailing zeros are printed as one and two dots.
struct Dump<'e>(&'e Event<'e>);

impl Display for Dump<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.pdu;
        if bytes.is_empty() {
            return Ok(());
        }
        let told = bytes.iter().rev().skip_while(|&&b| b == 0).count();
        for (at, byte) in bytes[..told].iter().enumerate() {
            let before = if at == 0 { '(' } else { ' ' };
            write!(f, "{before}{byte:02x}")?;
        }
        if told < bytes.len() {
            let before = if told == 0 { '(' } else { ' ' };
            write!(f, "{before}00 ..")?;
        }
        f.write_str(") ")
    }
}
