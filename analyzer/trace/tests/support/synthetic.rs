// SPDX-License-Identifier: MIT OR Apache-2.0
//! A simulated block layer: it plays IOs in parallel, and reports the events that a kernel would trace and the completions
//! that must result.

use super::io::{Io, Step};
use super::random::Random;
use mostrace_bundle::blk_io_trace::{Layout, Version, encode};
use mostrace_trace::blktrace::action::*;
use mostrace_trace::blktrace::{Completion, Event, Part};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

pub const V7: Layout = Layout {
    version: Version::V7,
    big_endian: false,
};

const DEVICE: u32 = 8 << 20;
const META_SYNC_WRITE: u64 = BLK_TC_WRITE | BLK_TC_SYNC | BLK_TC_META;
const FLUSH_REQUEST: u64 = BLK_TC_READ | BLK_TC_FLUSH;
const QUEUE_CATEGORY: u64 = 1 << 20;
const FS: u64 = 1 << 24;

/// The parameters of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    pub seed: u64,
    pub ios: u64,
    pub cpus: u32,
    /// True for only reads and writes with merges and plugs, which btt and blkparse define as we do.
    pub plain: bool,
}

fn carries_data(op: u64) -> bool {
    op & (BLK_TC_DISCARD | BLK_TC_PC) == 0
}

pub struct Simulator {
    recipe: Recipe,
    random: Random,
    now_ns: u64,
    cursor: u64,
    started: u64,
    single_busy: bool,
    ios: BTreeMap<u64, Io>,
    agenda: BinaryHeap<Reverse<(u64, u64)>>,
    sequence: Vec<u32>,
    /// Where the last read and the last write ended.
    ends: [Option<u64>; 2],
}

impl Simulator {
    pub fn new(recipe: Recipe) -> Self {
        Self {
            recipe,
            random: Random::new(recipe.seed),
            now_ns: 1_000_000,
            cursor: 2048,
            started: 0,
            single_busy: false,
            ios: BTreeMap::new(),
            agenda: BinaryHeap::new(),
            sequence: vec![0; recipe.cpus as usize],
            ends: [None; 2],
        }
    }

    /// Plays everything; `emit` gets each event, with strictly rising times, and its completion if it is a C.
    pub fn run(mut self, mut emit: impl FnMut(Event<'static>, Option<Completion<'static>>)) {
        self.notes(&mut emit);
        self.start();
        while let Some(Reverse((due_ns, id))) = self.agenda.pop() {
            self.now_ns = due_ns.max(self.now_ns + 1);
            if id == self.started && self.started < self.recipe.ios {
                self.start_io();
                self.start();
                continue;
            }
            let mut io = self.ios.remove(&id).expect("on the agenda");
            let (_, step) = io.steps.pop_front().expect("a step");
            let (event, completion) = self.play(&mut io, step);
            emit(event, completion);
            match io.steps.front() {
                Some((delay, _)) => {
                    self.agenda.push(Reverse((self.now_ns + delay, id)));
                    self.ios.insert(id, io);
                }
                None if io.single => self.single_busy = false,
                None => {}
            }
        }
    }

    fn notes(&mut self, emit: &mut impl FnMut(Event<'static>, Option<Completion<'static>>)) {
        let mut clock = 1_700_000_000_u32.to_le_bytes().to_vec();
        clock.extend(7_u32.to_le_bytes());
        self.now_ns += 1;
        emit(
            self.event(BLK_TC_NOTIFY | tn::TIMESTAMP, 0, 0, 0, 0, clock),
            None,
        );
        for pid in 100..132 {
            let mut comm = format!("app{pid}").into_bytes();
            comm.resize(16, 0);
            self.now_ns += 1;
            emit(
                self.event(BLK_TC_NOTIFY | tn::PROCESS, 0, 0, pid, 0, comm),
                None,
            );
        }
    }

    /// Puts the start of the next IO on the agenda.
    fn start(&mut self) {
        if self.started < self.recipe.ios {
            let gap = 200 + self.random.below(60_000);
            self.agenda.push(Reverse((self.now_ns + gap, self.started)));
        }
    }

    fn start_io(&mut self) {
        let kind = if self.recipe.plain {
            99
        } else {
            self.random.below(16)
        };
        let io = match kind {
            0 | 1 if !self.single_busy => self.flush(kind == 0),
            2 if !self.single_busy => self.passthrough(),
            3 => self.split(),
            4 => self.bio_based(),
            _ => self.merged(),
        };
        self.single_busy |= io.single;
        let delay = io.steps.front().expect("steps").0;
        self.agenda
            .push(Reverse((self.now_ns + delay, self.started)));
        self.ios.insert(self.started, io);
        self.started += 1;
        // `run` distinguishes starts from steps by the id, so an IO's own id must be below it by now.
    }

    fn io(&mut self, op: u64, lengths: &[u32]) -> Io {
        // The gap is so large that nothing in flight touches anything else.
        self.cursor = (self.cursor + 8 + self.random.below(4096)) % (1 << 40);
        let parts = lengths
            .iter()
            .map(|&bytes| {
                let sector = self.cursor;
                self.cursor += u64::from(bytes / 512);
                Part {
                    sector,
                    bytes,
                    ..Part::default()
                }
            })
            .collect();
        Io {
            op,
            pid: 100 + self.random.below(32) as u32,
            cpu: self.random.below(u64::from(self.recipe.cpus)) as u32,
            parts,
            g_ns: None,
            i_ns: None,
            d_ns: None,
            flush_d_ns: None,
            sequential: false,
            done: 0,
            single: false,
            steps: VecDeque::new(),
        }
    }

    /// A request of several bios, merged at both ends, possibly plugged, requeued, or completed in parts.
    fn merged(&mut self) -> Io {
        let op = match self.random.below(10) {
            0..4 => BLK_TC_READ,
            4 => BLK_TC_READ | BLK_TC_AHEAD,
            5 if !self.recipe.plain => BLK_TC_WRITE | BLK_TC_DISCARD,
            6 if !self.recipe.plain => META_SYNC_WRITE | BLK_TC_FUA,
            _ => BLK_TC_WRITE | BLK_TC_SYNC,
        };
        let bios = [1, 1, 1, 2, 3, 6][self.random.below(6) as usize];
        let lengths: Vec<u32> = (0..bios)
            .map(|_| 4096 * (1 + self.random.below(4) as u32))
            .collect();
        let total: u32 = lengths.iter().sum();
        let mut io = self.io(op, &lengths);
        let first = self.random.below(bios) as usize;
        let plug = self.random.one_in(2);
        io.then(500, Step::Queue(first))
            .then(900, Step::GetRequest(first));
        if plug {
            io.then(200, Step::Trace(QUEUE_CATEGORY | ta::PLUG, 0, 0, vec![]));
        }
        let back = (first + 1..lengths.len()).map(|i| (i, ta::BACKMERGE));
        let front = (0..first).rev().map(|i| (i, ta::FRONTMERGE));
        for (i, merge) in back.chain(front) {
            let Part { sector, bytes, .. } = io.parts[i];
            let merge = QUEUE_CATEGORY | op | merge;
            io.then(700, Step::Queue(i));
            io.then(300, Step::Trace(merge, sector, bytes, vec![]));
        }
        if plug {
            let depth = 1_u64.to_be_bytes().to_vec();
            io.then(
                300,
                Step::Trace(QUEUE_CATEGORY | ta::UNPLUG_IO, 0, 0, depth),
            );
        }
        if self.recipe.plain || self.random.one_in(2) {
            io.then(400, Step::Insert);
        }
        io.then(800, Step::Issue);
        if !self.recipe.plain && self.random.one_in(12) {
            let requeue = (1 << 21) | FS | op | ta::REQUEUE;
            io.then(
                5_000,
                Step::Trace(requeue, io.parts[0].sector, total, vec![]),
            );
            io.then(9_000, Step::Issue);
        }
        let wait = 20_000 + self.random.below(400_000);
        if !self.recipe.plain && self.random.one_in(12) {
            let sectors = u64::from(total / 512);
            let part = 512 * (1 + self.random.below(sectors - 1) as u32);
            io.then(wait, Step::Complete(part))
                .then(3_000, Step::Complete(total - part));
        } else {
            io.then(wait, Step::Complete(total));
        }
        io
    }

    /// One large bio, cut into several requests: only the first piece begins with the Q's sector, and that Q covers all
    /// pieces.
    fn split(&mut self) -> Io {
        // It is played as one IO whose pieces follow one another.
        let pieces = 2 + self.random.below(5) as usize;
        let mut io = self.io(BLK_TC_WRITE, &vec![65_536; pieces]);
        let (sector, all) = (io.parts[0].sector, 65_536 * pieces as u32);
        io.then(
            500,
            Step::Trace(QUEUE_CATEGORY | io.op | ta::QUEUE, sector, all, vec![]),
        );
        for i in 0..pieces {
            let Part { sector, bytes, .. } = io.parts[i];
            if i + 1 < pieces {
                let cut = (sector + 128).to_be_bytes().to_vec();
                io.then(300, Step::Trace(io.op | ta::SPLIT, sector, bytes, cut));
            }
            io.then(300, Step::GetRequest(i)).then(200, Step::Issue);
            io.then(50_000, Step::Complete(bytes));
        }
        io
    }

    /// A flush, alone or before a write that also asks for FUA.
    fn flush(&mut self, with_data: bool) -> Io {
        let mut io = match with_data {
            true => self.io(META_SYNC_WRITE | BLK_TC_FLUSH | BLK_TC_FUA, &[4096]),
            false => self.io(BLK_TC_WRITE | BLK_TC_SYNC | BLK_TC_FLUSH, &[0]),
        };
        io.single = true;
        io.then(500, Step::Queue(0)).then(500, Step::GetRequest(0));
        io.then(500, Step::FlushIssue)
            .then(90_000, Step::FlushComplete);
        if with_data {
            io.then(5_000, Step::Insert).then(500, Step::Issue);
            io.then(30_000, Step::Complete(4096));
            io.then(500, Step::FlushIssue)
                .then(90_000, Step::FlushComplete);
        } else {
            io.parts[0].sector = 0;
        }
        io.then(900, Step::End);
        io
    }

    /// A passthrough request, whose bios are not traced.
    fn passthrough(&mut self) -> Io {
        let mut io = self.io(BLK_TC_READ | BLK_TC_PC, &[512]);
        io.parts[0].sector = 0;
        io.single = true;
        io.then(500, Step::Issue).then(20_000, Step::Complete(512));
        io
    }

    /// A request to a driver without requests.
    fn bio_based(&mut self) -> Io {
        let mut io = self.io(BLK_TC_READ, &[8192]);
        io.then(500, Step::Queue(0))
            .then(20_000, Step::Complete(8192));
        io
    }

    fn play(&mut self, io: &mut Io, step: Step) -> (Event<'static>, Option<Completion<'static>>) {
        let now = self.now_ns;
        let fs = if io.op & BLK_TC_PC == 0 { FS } else { 0 };
        let first = io.parts[0].sector;
        let total: u32 = io.parts.iter().map(|p| p.bytes).sum();
        // The pieces of a split bio are requests one after the other.
        let (start, len) = match io.piece() {
            Some(part) => (part.sector, part.bytes),
            None => (first, total),
        };
        // The flush machinery removes the flush bit from the request.
        let op = io.op & !BLK_TC_FLUSH;
        match step {
            Step::Trace(action, sector, bytes, pdu) => {
                if act(action) == ta::QUEUE {
                    io.queue_all(now);
                }
                (self.event(action, sector, bytes, io.pid, io.cpu, pdu), None)
            }
            Step::Queue(i) => {
                io.parts[i].q_ns = Some(now);
                io.parts[i].q_cpu = Some(io.cpu);
                io.parts[i].pid = Some(io.pid);
                let Part { sector, bytes, .. } = io.parts[i];
                let action = QUEUE_CATEGORY | io.op | ta::QUEUE;
                (
                    self.event(action, sector, bytes, io.pid, io.cpu, vec![]),
                    None,
                )
            }
            Step::GetRequest(i) => {
                io.g_ns = Some(now);
                let Part { sector, bytes, .. } = io.parts[i];
                let action = QUEUE_CATEGORY | io.op | ta::GETRQ;
                (
                    self.event(action, sector, bytes, io.pid, io.cpu, vec![]),
                    None,
                )
            }
            Step::Insert => {
                io.i_ns = Some(now);
                let action = QUEUE_CATEGORY | FS | op | ta::INSERT;
                (self.event(action, start, len, io.pid, io.cpu, vec![]), None)
            }
            Step::Issue => {
                io.d_ns = Some(now);
                io.sequential = self.follows(io.op, start, len);
                let action = (1 << 22) | fs | op | ta::ISSUE;
                (self.event(action, start, len, 44, io.cpu, vec![]), None)
            }
            Step::FlushIssue => {
                io.flush_d_ns = Some(now);
                let action = (1 << 22) | FS | FLUSH_REQUEST | ta::ISSUE;
                (self.event(action, 0, 0, 44, io.cpu, vec![]), None)
            }
            Step::Complete(bytes) => {
                let at = match io.piece() {
                    Some(part) => part.sector,
                    None => first + u64::from(io.done / 512),
                };
                let sequential = match io.d_ns {
                    Some(_) => io.sequential || at != start && carries_data(io.op),
                    None => self.follows(io.op, at, bytes),
                };
                let parts = io.complete(bytes);
                let (g, i) = (io.g_ns, io.i_ns);
                self.completed(fs | op, at, bytes, io.cpu, io.d_ns, i, g, sequential, parts)
            }
            Step::FlushComplete => {
                let part = Part {
                    sector: 0,
                    bytes: 0,
                    ..Part::default()
                };
                self.completed(
                    FS | FLUSH_REQUEST,
                    0,
                    0,
                    io.cpu,
                    io.flush_d_ns,
                    None,
                    None,
                    false,
                    vec![part],
                )
            }
            Step::End => {
                let part = Part {
                    bytes: 0,
                    ..io.parts[0]
                };
                self.completed(
                    FS | op,
                    first,
                    0,
                    io.cpu,
                    io.d_ns,
                    io.i_ns,
                    io.g_ns,
                    false,
                    vec![part],
                )
            }
        }
    }

    /// Returns true if a request begins where the one before it ended.
    fn follows(&mut self, op: u64, sector: u64, bytes: u32) -> bool {
        if !carries_data(op) {
            return false;
        }
        let last = &mut self.ends[usize::from(op & BLK_TC_WRITE != 0)];
        last.replace(sector + u64::from(bytes / 512)) == Some(sector)
    }

    #[allow(clippy::too_many_arguments)]
    fn completed(
        &mut self,
        op: u64,
        sector: u64,
        bytes: u32,
        issued_on: u32,
        d_ns: Option<u64>,
        i_ns: Option<u64>,
        g_ns: Option<u64>,
        sequential: bool,
        parts: Vec<Part>,
    ) -> (Event<'static>, Option<Completion<'static>>) {
        let cpu = self.random.below(u64::from(self.recipe.cpus)) as u32;
        let error: u16 = if self.random.one_in(500) { 5 } else { 0 };
        let mut event = self.event((1 << 23) | op | ta::COMPLETE, sector, bytes, 0, cpu, vec![]);
        // The kernel writes the negative errno.
        event.error = error.wrapping_neg();
        let completion = Completion {
            time_ns: self.now_ns,
            device: DEVICE,
            action: event.action,
            sector,
            moved: 0,
            begins_zone: false,
            bytes,
            error,
            cpu,
            device_flush: None,
            d_ns,
            d_cpu: d_ns.map(|_| issued_on),
            i_ns,
            i_cpu: i_ns.map(|_| issued_on),
            g_ns,
            twin: false,
            sequential,
            parts: parts.leak(),
        };
        (event, Some(completion))
    }

    fn event(
        &mut self,
        action: u64,
        sector: u64,
        bytes: u32,
        pid: u32,
        cpu: u32,
        pdu: Vec<u8>,
    ) -> Event<'static> {
        let sequence = &mut self.sequence[cpu as usize];
        *sequence += 1;
        Event {
            time_ns: self.now_ns,
            sector,
            action,
            cgroup: 0,
            bytes,
            pid,
            device: DEVICE,
            cpu,
            sequence: *sequence,
            error: 0,
            big_endian: false,
            pdu: pdu.leak(),
        }
    }
}

/// Returns events and expected completions of a recipe.
pub fn simulate(recipe: Recipe) -> (Vec<Event<'static>>, Vec<Completion<'static>>) {
    let (mut events, mut completions) = (Vec::new(), Vec::new());
    Simulator::new(recipe).run(|event, completion| {
        events.push(event);
        completions.extend(completion);
    });
    (events, completions)
}

/// Writes per-CPU files `NAME.blktrace.N`; a record's CPU determines its file. Returns the paths and the number of events.
pub fn write(recipe: Recipe, folder: &Path, name: &str) -> (Vec<PathBuf>, u64) {
    let paths: Vec<PathBuf> = (0..recipe.cpus)
        .map(|cpu| folder.join(format!("{name}.blktrace.{cpu}")))
        .collect();
    let mut files: Vec<BufWriter<File>> = paths
        .iter()
        .map(|path| BufWriter::new(File::create(path).expect("a new file")))
        .collect();
    let (mut record, mut events) = (Vec::new(), 0);
    Simulator::new(recipe).run(|event, _| {
        record.clear();
        encode(&event, V7, &mut record).expect("fits v7");
        files[event.cpu as usize]
            .write_all(&record)
            .expect("written");
        events += 1;
    });
    (paths, events)
}
