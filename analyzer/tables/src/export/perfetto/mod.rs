// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes Perfetto's trace format, for ui.perfetto.dev and trace_processor.
//!
//! Tracks: each thread with its system calls; each file with its requests from Q on; each device's queue from D on; counters
//! of bytes written by class and of requests in flight. A flow leads from a call to later requests for pages that it was the
//! last to write; for a copy in the journal whose cause is exact, from the last call by which the thread did that operation.
//! All rows are held in memory.

mod calls;
mod names;
mod proto;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use polars::prelude::DataFrame;
use prost::Message;

use super::error::Error;
use crate::analysis::Analysis;
use crate::facts::{Column, Facts};
use calls::{Call, Calls, FileKey};
use mostrace_trace::tally::Tally;
use mostrace_trace::text::escape;
use names::Names;
use proto::{
    CounterDescriptor, DebugAnnotation, ProcessDescriptor, ThreadDescriptor, Trace, TracePacket,
    TrackDescriptor, TrackEvent, event_type, unit,
};

type Result<T> = std::result::Result<T, Error>;

/// The sequence ID of all packets, which come from one writer.
const SEQUENCE: u32 = 1;

const COLUMNS: [&str; 20] = [
    "time_ns",
    "q2c_ns",
    "d2c_ns",
    "bytes",
    "completion",
    "inode",
    "file_offset",
    "cause_pid",
    "cause_inode",
    "sector",
    "generation",
    "cause_generation",
    "op",
    "class",
    "kind",
    "file",
    "device",
    "cause_known",
    "cause_op",
    "path",
];
/// The first of these columns are numbers; the others are text.
const NUMBERS: usize = 12;

/// A row of the facts.
#[derive(Clone, Debug, Default)]
struct Row {
    numbers: [Option<i64>; NUMBERS],
    texts: [Option<String>; COLUMNS.len() - NUMBERS],
}

impl Row {
    fn number(&self, at: usize) -> Option<u64> {
        self.numbers[at].and_then(|number| u64::try_from(number).ok())
    }

    fn end_ns(&self) -> u64 {
        self.number(0).unwrap_or(0)
    }

    /// Returns the time that lies before the end by the value of another column, ns.
    fn before_end(&self, at: usize) -> Option<u64> {
        self.end_ns().checked_sub(self.number(at)?)
    }

    /// Returns the time of Q, or else of D, or else of C.
    fn queued_ns(&self) -> u64 {
        let known = self.before_end(1).or(self.before_end(2));
        known.unwrap_or(self.end_ns())
    }

    fn bytes(&self) -> u64 {
        self.number(3).unwrap_or(0)
    }

    /// Returns the file given by the columns of its inode and generation.
    fn file(&self, inode: usize, generation: usize) -> Option<FileKey> {
        let generation = self.number(generation);
        Some(FileKey {
            inode: self.number(inode)?,
            generation: generation.and_then(|generation| u32::try_from(generation).ok()),
        })
    }

    fn text(&self, at: usize) -> &str {
        self.texts[at].as_deref().unwrap_or("")
    }

    fn op(&self) -> &str {
        self.text(0)
    }

    /// Returns the name of the row's slice.
    fn name(&self) -> String {
        match (self.op(), self.text(2)) {
            (op, "") => op.to_owned(),
            (op, kind) => format!("{op} {kind}"),
        }
    }

    /// Returns the index of the call that led to the row.
    fn call(&self, calls: &Calls) -> Option<usize> {
        let queued = self.queued_ns();
        match (self.op(), self.text(1), self.text(5)) {
            ("write", "data", _) => calls.wrote(self.file(5, 10)?, self.number(6)?, queued),
            ("write", "journal", "exact" | "shared" | "first") => {
                let pid = u32::try_from(self.number(7)?).ok()?;
                calls.did(pid, self.text(6), self.file(8, 11)?, queued)
            }
            _ => None,
        }
    }
}

/// Writes a trace that was read with its causes.
///
/// # Errors
/// Returns an error if the output cannot be written or a table of the bundle cannot be read.
pub(super) fn write(analysis: &Analysis, out: &mut impl Write) -> Result<()> {
    let calls = match analysis.calls()? {
        Some(mut table) => Calls::read(&mut table)?,
        None => Calls::default(),
    };
    let rows = rows(&analysis.facts)?;
    let mut writer = Writer::default();
    writer.calls(&calls, &analysis.facts, &names_of(&analysis.facts, &rows));
    writer.files(&rows, &calls);
    writer.queues(&rows);
    writer.counters(&rows);
    writer.finish(out)
}

/// Collects the files' names over time.
fn names_of(facts: &Facts, rows: &[Row]) -> Names {
    let mut names = Names::new(&facts.names().files);
    for row in rows {
        let path = row.text(7);
        if let Some(file) = row.file(5, 10).filter(|_| !path.is_empty()) {
            names.see(file, row.queued_ns(), path);
        }
    }
    names
}

fn rows(facts: &Facts) -> Result<Vec<Row>> {
    let columns = Column::all_of(&COLUMNS);
    let mut rows = Vec::new();
    for frame in facts.frames(&columns, None) {
        add_rows(&frame?, &mut rows)?;
    }
    rows.sort_by_key(Row::queued_ns);
    Ok(rows)
}

fn add_rows(frame: &DataFrame, rows: &mut Vec<Row>) -> Result<()> {
    let before = rows.len();
    rows.extend(std::iter::repeat_n(Row::default(), frame.height()));
    let (numbers, texts) = frame.columns().split_at(NUMBERS);
    for (at, column) in numbers.iter().enumerate() {
        for (row, value) in rows[before..].iter_mut().zip(column.i64()?.iter()) {
            row.numbers[at] = value;
        }
    }
    for (at, column) in texts.iter().enumerate() {
        for (row, value) in rows[before..].iter_mut().zip(column.str()?.iter()) {
            row.texts[at] = value.map(str::to_owned);
        }
    }
    Ok(())
}

/// A slice: something on a track that lasts for a time.
struct Slice {
    start_ns: u64,
    end_ns: u64,
    name: String,
    category: &'static str,
    flow: Option<u64>,
    arguments: Vec<DebugAnnotation>,
}

/// Parallel tracks, so that slices on each do not overlap: for each track, its number and when it becomes free.
#[derive(Default)]
struct Lanes(Vec<(u64, u64)>);

/// Collects the packets, which are written in time order.
#[derive(Default)]
struct Writer {
    descriptors: Vec<TracePacket>,
    events: Vec<Event>,
    tracks: u64,
}

/// A packet with an event in its encoded form; each row has several.
struct Event {
    time_ns: u64,
    /// False for the end of a slice, which sorts before what begins at the same moment.
    goes_on: bool,
    encoded: Box<[u8]>,
}

/// Encodes a packet. The encodings of single-packet files, concatenated, are a file of all packets.
fn encoded(packet: TracePacket) -> Vec<u8> {
    let packet = vec![packet];
    Trace { packet }.encode_to_vec()
}

fn number(name: &str, value: u64) -> DebugAnnotation {
    DebugAnnotation {
        name: Some(name.into()),
        int_value: i64::try_from(value).ok(),
        ..DebugAnnotation::default()
    }
}

fn word(name: &str, value: &str) -> DebugAnnotation {
    DebugAnnotation {
        name: Some(name.into()),
        string_value: Some(value.into()),
        ..DebugAnnotation::default()
    }
}

/// Returns the flow's number: that of its call plus 1, because 0 means none.
fn flow_of(call: usize) -> u64 {
    (call as u64).saturating_add(1)
}

impl Writer {
    fn track(&mut self, descriptor: TrackDescriptor) -> u64 {
        self.tracks.tally(1);
        self.descriptors.push(TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_descriptor: Some(TrackDescriptor {
                uuid: Some(self.tracks),
                ..descriptor
            }),
            ..TracePacket::default()
        });
        self.tracks
    }

    fn named(&mut self, name: &str, parent: Option<u64>) -> u64 {
        self.track(TrackDescriptor {
            name: Some(name.into()),
            parent_uuid: parent,
            ..TrackDescriptor::default()
        })
    }

    fn event(&mut self, time_ns: u64, event: TrackEvent) {
        let goes_on = event.event_type != Some(event_type::SLICE_END);
        let packet = TracePacket {
            timestamp: Some(time_ns),
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_event: Some(event),
            ..TracePacket::default()
        };
        self.events.push(Event {
            time_ns,
            goes_on,
            encoded: encoded(packet).into(),
        });
    }

    fn slice(&mut self, track: u64, slice: Slice) {
        let begin = TrackEvent {
            event_type: Some(event_type::SLICE_BEGIN),
            track_uuid: Some(track),
            categories: Some(slice.category.into()),
            name: Some(slice.name),
            flow_ids: slice.flow.into_iter().collect(),
            debug_annotations: slice.arguments,
            ..TrackEvent::default()
        };
        let end = TrackEvent {
            event_type: Some(event_type::SLICE_END),
            track_uuid: Some(track),
            ..TrackEvent::default()
        };
        self.event(slice.start_ns, begin);
        // A slice of no length would end before it begins.
        self.event(slice.end_ns.max(slice.start_ns.saturating_add(1)), end);
    }

    /// Puts a slice on the first free lane. Slices must come in the order of their beginnings.
    fn lay(&mut self, lanes: &mut Lanes, parent: u64, slice: Slice) {
        let end = slice.end_ns.max(slice.start_ns.saturating_add(1));
        let free = lanes.0.iter().position(|(_, free)| *free <= slice.start_ns);
        let lane = free.unwrap_or_else(|| {
            let lane = lanes.0.len();
            let name = lane.saturating_add(1).to_string();
            lanes.0.push((self.named(&name, Some(parent)), 0));
            lane
        });
        lanes.0[lane].1 = end;
        self.slice(lanes.0[lane].0, slice);
    }

    fn calls(&mut self, calls: &Calls, facts: &Facts, names: &Names) {
        let mut processes: HashMap<u32, u64> = HashMap::new();
        let mut threads: HashMap<u32, u64> = HashMap::new();
        // A track has one name: the last one.
        let name = |call: &Call| (call.task.tgid, facts.called(0, &call.task, call.end_ns));
        let called: HashMap<u32, String> = calls.list.iter().map(name).collect();
        for (at, call) in calls.list.iter().enumerate() {
            let id = |id: u32| i32::try_from(id).ok();
            let task = &call.task;
            let process = *processes.entry(task.tgid).or_insert_with(|| {
                self.track(TrackDescriptor {
                    process: Some(ProcessDescriptor {
                        pid: id(task.tgid),
                        process_name: called.get(&task.tgid).cloned(),
                    }),
                    ..TrackDescriptor::default()
                })
            });
            let thread = *threads.entry(task.pid).or_insert_with(|| {
                self.track(TrackDescriptor {
                    parent_uuid: Some(process),
                    thread: Some(ThreadDescriptor {
                        pid: id(task.tgid),
                        tid: id(task.pid),
                        thread_name: Some(escape(&facts.shown(task.comm()))),
                    }),
                    ..TrackDescriptor::default()
                })
            });
            let name: &str = call.kind.into();
            let file = names.at(call.file, call.start_ns);
            let file = file.map(|file| word("file", file));
            self.slice(
                thread,
                Slice {
                    start_ns: call.start_ns,
                    end_ns: call.end_ns,
                    name: name.into(),
                    category: "call",
                    flow: Some(flow_of(at)),
                    arguments: file
                        .into_iter()
                        .chain([number("bytes", call.bytes)])
                        .collect(),
                },
            );
        }
    }

    /// Draws rows under their file, from Q to C.
    fn files(&mut self, rows: &[Row], calls: &Calls) {
        let mut lanes: HashMap<String, (u64, Lanes)> = HashMap::new();
        let parent = self.named("files", None);
        for row in rows {
            let file = match (row.text(3), row.text(1)) {
                ("", "") => continue,
                ("", class) => format!("({class})"),
                (file, _) => file.to_owned(),
            };
            let (track, lanes) = lanes
                .entry(file)
                .or_insert_with_key(|file| (self.named(file, Some(parent)), Lanes::default()));
            let mut arguments = vec![number("bytes", row.bytes())];
            arguments.extend(row.number(4).map(|n| number("completion", n)));
            arguments.extend(row.number(9).map(|n| number("sector", n)));
            let slice = Slice {
                start_ns: row.queued_ns(),
                end_ns: row.end_ns(),
                name: row.name(),
                category: "row",
                flow: row.call(calls).map(flow_of),
                arguments,
            };
            self.lay(lanes, *track, slice);
        }
    }

    /// Draws requests under their device, from D to C.
    fn queues(&mut self, rows: &[Row]) {
        let mut requests: BTreeMap<u64, (u64, u64, &Row)> = BTreeMap::new();
        for row in rows {
            let start = row.before_end(2).unwrap_or(row.end_ns());
            let key = row.number(4).unwrap_or(0);
            let (_, bytes, _) = requests.entry(key).or_insert((start, 0, row));
            bytes.tally(row.bytes());
        }
        let mut requests: Vec<_> = requests.into_values().collect();
        requests.sort_by_key(|(start, ..)| *start);
        let mut lanes: HashMap<String, (u64, Lanes)> = HashMap::new();
        for (start_ns, bytes, row) in requests {
            let device = row.text(4).to_owned();
            let (track, lanes) = lanes.entry(device).or_insert_with_key(|device| {
                let track = self.named(&format!("device {device}"), None);
                (track, Lanes::default())
            });
            let slice = Slice {
                start_ns,
                end_ns: row.end_ns(),
                name: row.name(),
                category: "request",
                flow: None,
                arguments: vec![number("bytes", bytes)],
            };
            self.lay(lanes, *track, slice);
        }
    }

    fn counter(&mut self, name: &str, unit: i32) -> u64 {
        self.track(TrackDescriptor {
            name: Some(name.into()),
            counter: Some(CounterDescriptor { unit: Some(unit) }),
            ..TrackDescriptor::default()
        })
    }

    fn count(&mut self, track: u64, time_ns: u64, value: i64) {
        let event = TrackEvent {
            event_type: Some(event_type::COUNTER),
            track_uuid: Some(track),
            counter_value: Some(value),
            ..TrackEvent::default()
        };
        self.event(time_ns, event);
    }

    /// Draws counters of the bytes written so far by class, and of the rows in flight.
    fn counters(&mut self, rows: &[Row]) {
        let mut completed: Vec<&Row> = rows.iter().filter(|row| row.op() == "write").collect();
        completed.sort_by_key(|row| row.end_ns());
        let mut written: HashMap<&str, (u64, u64)> = HashMap::new();
        for row in completed {
            let class = row.text(1);
            let (track, sum) = written.entry(class).or_insert_with(|| {
                let name = format!("{class} written");
                (self.counter(&name, unit::SIZE_BYTES), 0)
            });
            sum.tally(row.bytes());
            let (track, sum) = (*track, i64::try_from(*sum).unwrap_or(i64::MAX));
            self.count(track, row.end_ns(), sum);
        }
        let mut steps: BTreeMap<u64, i64> = BTreeMap::new();
        for row in rows {
            steps.entry(row.queued_ns()).or_default().tally(1);
            steps.entry(row.end_ns()).or_default().tally(-1);
        }
        let track = self.counter("under way", unit::COUNT);
        let mut under_way = 0_i64;
        for (time_ns, step) in steps {
            under_way.tally(step);
            self.count(track, time_ns, under_way);
        }
    }

    fn finish(mut self, out: &mut impl Write) -> Result<()> {
        self.events
            .sort_by_key(|event| (event.time_ns, event.goes_on));
        for packet in self.descriptors {
            out.write_all(&encoded(packet))?;
        }
        for event in self.events {
            out.write_all(&event.encoded)?;
        }
        Ok(())
    }
}
