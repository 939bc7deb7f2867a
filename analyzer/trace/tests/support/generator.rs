// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generates traces of any size, as a busy machine would leave them, and writes them at once: memory does not grow with
//! their length.
//!
//! Threads read at random and ahead, write through the page cache in merged requests, and sync small writes, after which
//! jbd2 commits: merged descriptor and copies, then a block with flush and FUA on a device without FUA. Sometimes a bio is
//! split, or a request is requeued, completed in two steps or a discard. Completions are on the submitting CPU or another
//! one, and some records stand one or two places late in their file, as after interrupts. On average a request has five
//! events.

use super::random::Random;
use mostrace_bundle::blk_io_trace::{Event, Layout, Version, encode};
use mostrace_trace::blktrace::action::*;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The parameters of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    pub seed: u64,
    /// The number of events, beside those of requests that are in flight then.
    pub events: u64,
    pub cpus: u32,
}

/// A bio and its events' times.
#[derive(Clone, Copy, Debug)]
pub struct Bio {
    pub device: u32,
    pub sector: u64,
    /// Length in bytes; 0 for a lone flush.
    pub bytes: u32,
    /// Category bits (`BLK_TC_…`) without an act.
    pub action: u64,
    /// The thread that queued it.
    pub pid: u32,
    pub cpu: u32,
    /// True if it is a block of jbd2's journal.
    pub journal: bool,
    pub q_ns: u64,
    /// Time of I, ns; None if the request was issued without insertion.
    pub i_ns: Option<u64>,
    /// Time of the last D, ns.
    pub d_ns: u64,
    /// Time of the C of its last byte, ns.
    pub c_ns: u64,
}

impl Bio {
    /// Returns when a probe would make its entry: at I, or else at the first D.
    pub fn made_ns(&self) -> u64 {
        self.i_ns.unwrap_or(self.d_ns)
    }
}

pub const DEVICE: u32 = 8 << 20;
/// The journal's sectors.
const JOURNAL: std::ops::Range<u64> = 2_048..264_192;
/// The files' sectors.
const FILES: std::ops::Range<u64> = 1 << 20..1 << 29;
const THREADS: u32 = 32;
const FIRST_PID: u32 = 100;
const JBD2: u32 = 90;
const KBLOCKD: u32 = 44;

const TC_QUEUE: u64 = 1 << 20;
const TC_REQUEUE: u64 = 1 << 21;
const TC_ISSUE: u64 = 1 << 22;
const TC_COMPLETE: u64 = 1 << 23;
const TC_FS: u64 = 1 << 24;
const SYNC_WRITE: u64 = BLK_TC_WRITE | BLK_TC_SYNC;
const SYNC_READ: u64 = BLK_TC_READ | BLK_TC_SYNC;
const COMMIT: u64 = SYNC_WRITE | BLK_TC_META | BLK_TC_FLUSH | BLK_TC_FUA;
const FLUSH: u64 = BLK_TC_READ | BLK_TC_FLUSH;

/// Writes `NAME.blktrace.N` into `dir`, v7; returns the paths in the order of CPUs and the number of events.
pub fn generate(recipe: &Recipe, dir: &Path, name: &str) -> io::Result<(Vec<PathBuf>, u64)> {
    generate_with(recipe, dir, name, |_| Ok(()))
}

/// Writes a trace, and calls the callback with each bio in the order of [`Bio::made_ns`], in which a table's entries would
/// be written.
pub fn generate_with(
    recipe: &Recipe,
    dir: &Path,
    name: &str,
    each: impl FnMut(&Bio) -> io::Result<()>,
) -> io::Result<(Vec<PathBuf>, u64)> {
    let paths: Vec<PathBuf> = (0..recipe.cpus)
        .map(|cpu| dir.join(format!("{name}.blktrace.{cpu}")))
        .collect();
    let files = paths.iter().map(|path| CpuFile::create(path));
    let mut generator = Generator {
        random: Random::new(recipe.seed),
        files: files.collect::<io::Result<_>>()?,
        each,
        agenda: BinaryHeap::new(),
        now_ns: 1_000_000_000,
        planned: 0,
        serial: 0,
        thread: 0,
        streams: (0..u64::from(THREADS))
            .map(|thread| FILES.start + thread * ((FILES.end - FILES.start) / u64::from(THREADS)))
            .collect(),
        journal: JOURNAL.start,
        committed_ns: 0,
    };
    generator.notes()?;
    while generator.planned < recipe.events {
        let next_ns = generator.now_ns + 100 + generator.random.below(15_000);
        generator.play_until(next_ns)?;
        generator.now_ns = next_ns;
        generator.plan();
    }
    generator.play_until(u64::MAX)?;
    for file in &mut generator.files {
        file.finish()?;
    }
    Ok((paths, generator.planned))
}

struct Generator<F> {
    random: Random,
    files: Vec<CpuFile>,
    each: F,
    agenda: BinaryHeap<Reverse<Due>>,
    now_ns: u64,
    /// Number of events so far.
    planned: u64,
    serial: u64,
    thread: u32,
    /// The sector where each thread continues.
    streams: Vec<u64>,
    /// The sector where jbd2 continues.
    journal: u64,
    /// The end of the last commit, ns: there is one at a time.
    committed_ns: u64,
}

/// An event on the agenda.
struct Due {
    time_ns: u64,
    /// Events of equal time are in the order in which they were planned.
    serial: u64,
    what: What,
}

enum What {
    Record(Event<'static>, Option<u64>),
    Made(Bio),
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.time_ns, self.serial).cmp(&(other.time_ns, other.serial))
    }
}

/// The state of a request while it is planned.
struct Way {
    at_ns: u64,
    op: u64,
    pid: u32,
    cpu: u32,
}

impl<F: FnMut(&Bio) -> io::Result<()>> Generator<F> {
    fn play_until(&mut self, end_ns: u64) -> io::Result<()> {
        while let Some(Reverse(due)) = self.agenda.peek()
            && due.time_ns < end_ns
        {
            match self.agenda.pop() {
                Some(Reverse(Due { what, .. })) => match what {
                    What::Record(event, pdu) => self.write(event, pdu)?,
                    What::Made(bio) => (self.each)(&bio)?,
                },
                None => break,
            }
        }
        Ok(())
    }

    fn write(&mut self, event: Event<'static>, pdu: Option<u64>) -> io::Result<()> {
        let pdu = pdu.map(u64::to_be_bytes);
        let pdu = pdu.as_ref().map_or(&[][..], |pdu| pdu);
        let event = Event { pdu, ..event };
        let late = self.random.one_in(200).then(|| 1 + self.random.below(2));
        self.files[event.cpu as usize].push(&event, late)
    }

    fn notes(&mut self) -> io::Result<()> {
        for cpu in 0..self.files.len() as u32 {
            let clock = [1_700_000_000_u32.to_le_bytes(), 7_u32.to_le_bytes()].concat();
            self.note(cpu, 0, tn::TIMESTAMP, &clock)?;
        }
        for pid in (FIRST_PID..FIRST_PID + THREADS).chain([JBD2, KBLOCKD]) {
            let mut comm = match pid {
                JBD2 => "jbd2/sda1-8".to_owned(),
                KBLOCKD => "kworker/0:1H".to_owned(),
                _ => format!("app-{pid}"),
            }
            .into_bytes();
            comm.resize(16, 0);
            self.note(self.cpu_of(pid), pid, tn::PROCESS, &comm)?;
        }
        Ok(())
    }

    fn note(&mut self, cpu: u32, pid: u32, what: u64, pdu: &[u8]) -> io::Result<()> {
        let event = Event {
            time_ns: self.now_ns,
            action: BLK_TC_NOTIFY | what,
            pid,
            cpu,
            pdu,
            ..Event::default()
        };
        self.planned += 1;
        self.files[cpu as usize].push(&event, None)
    }

    fn cpu_of(&self, pid: u32) -> u32 {
        pid % self.files.len() as u32
    }

    /// Plans one more IO; a thread usually does several in a row.
    fn plan(&mut self) {
        if self.random.one_in(4) {
            self.thread = self.random.below(u64::from(THREADS)) as u32;
        }
        match self.random.below(1000) {
            0..520 => self.random_read(),
            520..700 => self.small_write(),
            700..800 => self.merged(SYNC_READ | BLK_TC_AHEAD, 4),
            800..870 => self.merged(BLK_TC_WRITE, 6),
            870..900 if self.committed_ns < self.now_ns => self.commit(),
            900..903 => self.discard(),
            903..905 => self.split(),
            _ => self.random_read(),
        }
    }

    fn way(&mut self, op: u64) -> Way {
        let pid = FIRST_PID + self.thread;
        Way {
            at_ns: self.now_ns,
            op,
            pid,
            cpu: self.cpu_of(pid),
        }
    }

    /// Returns the sectors with which the thread continues.
    fn next_sectors(&mut self, bytes: u32) -> u64 {
        let at = &mut self.streams[self.thread as usize];
        let sectors = u64::from(bytes / 512);
        if *at + sectors > FILES.end {
            *at = FILES.start;
        }
        let sector = *at;
        *at += sectors;
        sector
    }

    fn random_read(&mut self) {
        let sector = FILES.start + 8 * self.random.below((FILES.end - FILES.start) / 8);
        let mut way = self.way(SYNC_READ);
        self.request(&mut way, &[(sector, 4096)], false, false);
    }

    fn small_write(&mut self) {
        let sector = match self.random.one_in(2) {
            true => self.next_sectors(4096),
            false => FILES.start + 8 * self.random.below((FILES.end - FILES.start) / 8),
        };
        let mut way = self.way(SYNC_WRITE);
        self.request(&mut way, &[(sector, 4096)], true, false);
    }

    /// Plans a request that grows at its end while it is plugged.
    fn merged(&mut self, op: u64, most: u64) {
        let bios: Vec<(u64, u32)> = (0..1 + self.random.below(most))
            .map(|_| {
                let bytes = 4096 << self.random.below(4);
                (self.next_sectors(bytes), bytes)
            })
            .collect();
        let adjoin = bios
            .windows(2)
            .all(|two| two[0].0 + u64::from(two[0].1 / 512) == two[1].0);
        let mut way = self.way(op);
        match adjoin {
            true => self.request(&mut way, &bios, true, false),
            false => self.request(&mut way, &bios[..1], true, false),
        }
    }

    fn discard(&mut self) {
        let sector = self.next_sectors(1 << 20);
        let mut way = self.way(BLK_TC_WRITE | BLK_TC_DISCARD);
        self.request(&mut way, &[(sector, 1 << 20)], true, false);
    }

    /// Plans a bio that is too long for the device: its front gets a request of its own.
    fn split(&mut self) {
        let (front, bytes) = (1 << 19, 1 << 20);
        let sector = self.next_sectors(bytes);
        let mut way = self.way(SYNC_WRITE);
        let q_ns = self.queue(&mut way, sector, bytes);
        let cut = sector + u64::from(front / 512);
        self.step(&mut way, 300, ta::SPLIT, sector, front, Some(cut));
        for sector in [sector, cut] {
            self.step(&mut way, 400, TC_QUEUE | ta::GETRQ, sector, front, None);
            let mut way = Way { ..way };
            let d_ns = self.issue(&mut way, sector, front);
            let c_ns = self.complete(&mut way, sector, front);
            self.made(&way, [(sector, front, q_ns)], None, d_ns, c_ns, false);
        }
    }

    /// Plans a commit of jbd2: descriptor and copies, then the commit block.
    fn commit(&mut self) {
        let copies = 2 + self.random.below(4);
        if self.journal + 8 * (copies + 1) > JOURNAL.end {
            self.journal = JOURNAL.start;
        }
        let first = self.journal;
        self.journal += 8 * (copies + 1);
        let bios: Vec<_> = (0..copies).map(|i| (first + 8 * i, 4096)).collect();
        let cpu = self.cpu_of(FIRST_PID + self.thread);
        let mut way = Way {
            at_ns: self.now_ns,
            op: SYNC_WRITE,
            pid: JBD2,
            cpu,
        };
        self.request(&mut way, &bios, true, true);
        way.op = COMMIT;
        let sector = first + 8 * copies;
        let q_ns = self.queue(&mut way, sector, 4096);
        self.step(
            &mut way,
            500,
            TC_QUEUE | COMMIT | ta::GETRQ,
            sector,
            4096,
            None,
        );
        self.flush_device(&mut way);
        // The flush machinery has removed the flush bit from the request.
        way.op = COMMIT & !BLK_TC_FLUSH;
        let i_ns = self.insert(&mut way, sector, 4096);
        let d_ns = self.issue(&mut way, sector, 4096);
        let c_ns = self.complete(&mut way, sector, 4096);
        self.made(&way, [(sector, 4096, q_ns)], Some(i_ns), d_ns, c_ns, true);
        self.flush_device(&mut way);
        let end = TC_COMPLETE | TC_FS | way.op | ta::COMPLETE;
        self.step(&mut way, 600, end, sector, 0, None);
        self.committed_ns = way.at_ns;
    }

    /// Plans the flush machinery's own request.
    fn flush_device(&mut self, way: &mut Way) {
        let mut flush = Way {
            op: FLUSH,
            pid: KBLOCKD,
            ..*way
        };
        self.step(
            &mut flush,
            500,
            TC_ISSUE | TC_FS | FLUSH | ta::ISSUE,
            0,
            0,
            None,
        );
        let wait = 300_000 + self.random.below(900_000);
        self.step(
            &mut flush,
            wait,
            TC_COMPLETE | TC_FS | FLUSH | ta::COMPLETE,
            0,
            0,
            None,
        );
        way.at_ns = flush.at_ns;
    }

    /// Plans adjacent bios as one request, from Q to C.
    fn request(&mut self, way: &mut Way, bios: &[(u64, u32)], insert: bool, journal: bool) {
        let bytes = bios.iter().map(|&(_, bytes)| bytes).sum();
        let sector = bios[0].0;
        let plugged = bios.len() > 1;
        let mut queued = Vec::with_capacity(bios.len());
        for (i, &(sector, bytes)) in bios.iter().enumerate() {
            queued.push((sector, bytes, self.queue(way, sector, bytes)));
            let next = if i == 0 { ta::GETRQ } else { ta::BACKMERGE };
            self.step(way, 300, TC_QUEUE | way.op | next, sector, bytes, None);
            if plugged && i == 0 {
                self.step(way, 100, TC_QUEUE | ta::PLUG, 0, 0, None);
            }
        }
        if plugged {
            self.step(way, 300, TC_QUEUE | ta::UNPLUG_IO, 0, 0, Some(1));
        }
        let i_ns = insert.then(|| self.insert(way, sector, bytes));
        let mut d_ns = self.issue(way, sector, bytes);
        if insert && self.random.one_in(2_000) {
            let requeue = TC_REQUEUE | TC_FS | way.op | ta::REQUEUE;
            self.step(way, 4_000, requeue, sector, bytes, None);
            d_ns = self.issue(way, sector, bytes);
        }
        let front = 4096;
        let c_ns = if bytes > front && self.random.one_in(1_000) {
            self.complete(way, sector, front);
            self.complete(way, sector + u64::from(front / 512), bytes - front)
        } else {
            self.complete(way, sector, bytes)
        };
        self.made(way, queued, i_ns, d_ns, c_ns, journal);
    }

    fn queue(&mut self, way: &mut Way, sector: u64, bytes: u32) -> u64 {
        self.step(way, 400, TC_QUEUE | way.op | ta::QUEUE, sector, bytes, None);
        way.at_ns
    }

    fn insert(&mut self, way: &mut Way, sector: u64, bytes: u32) -> u64 {
        let action = TC_QUEUE | TC_FS | way.op | ta::INSERT;
        self.step(way, 500, action, sector, bytes, None);
        way.at_ns
    }

    fn issue(&mut self, way: &mut Way, sector: u64, bytes: u32) -> u64 {
        let action = TC_ISSUE | TC_FS | way.op | ta::ISSUE;
        self.step(way, 700, action, sector, bytes, None);
        way.at_ns
    }

    /// Plans a C, on the submitter's CPU or where the interrupt came.
    fn complete(&mut self, way: &mut Way, sector: u64, bytes: u32) -> u64 {
        let cpu = match self.random.one_in(4) {
            true => self.random.below(self.files.len() as u64) as u32,
            false => way.cpu,
        };
        let mut interrupt = Way {
            pid: 0,
            cpu,
            ..*way
        };
        let wait = 40_000 + self.random.below(200_000);
        let action = TC_COMPLETE | TC_FS | way.op | ta::COMPLETE;
        self.step(&mut interrupt, wait, action, sector, bytes, None);
        way.at_ns = interrupt.at_ns;
        way.at_ns
    }

    /// Puts an event on the agenda, about `delay` after the one before it.
    fn step(
        &mut self,
        way: &mut Way,
        delay: u64,
        action: u64,
        sector: u64,
        bytes: u32,
        pdu: Option<u64>,
    ) {
        way.at_ns += delay / 2 + self.random.below(delay);
        let event = Event {
            time_ns: way.at_ns,
            sector,
            action,
            bytes,
            pid: way.pid,
            device: DEVICE,
            cpu: way.cpu,
            ..Event::default()
        };
        self.planned += 1;
        self.due(way.at_ns, What::Record(event, pdu));
    }

    fn made(
        &mut self,
        way: &Way,
        queued: impl IntoIterator<Item = (u64, u32, u64)>,
        i_ns: Option<u64>,
        d_ns: u64,
        c_ns: u64,
        journal: bool,
    ) {
        for (sector, bytes, q_ns) in queued {
            let bio = Bio {
                device: DEVICE,
                sector,
                bytes,
                action: way.op,
                pid: way.pid,
                cpu: way.cpu,
                journal,
                q_ns,
                i_ns,
                d_ns,
                c_ns,
            };
            self.due(bio.made_ns(), What::Made(bio));
        }
    }

    fn due(&mut self, time_ns: u64, what: What) {
        self.serial += 1;
        let serial = self.serial;
        self.agenda.push(Reverse(Due {
            time_ns,
            serial,
            what,
        }));
    }
}

/// A CPU's file, and the record that stands late in it.
struct CpuFile {
    out: BufWriter<File>,
    sequence: u32,
    record: Vec<u8>,
    late: Vec<u8>,
    /// The number of records after which the late one follows.
    wait: u64,
}

impl CpuFile {
    fn create(path: &Path) -> io::Result<Self> {
        Ok(Self {
            out: BufWriter::with_capacity(1 << 18, File::create(path)?),
            sequence: 0,
            record: Vec::new(),
            late: Vec::new(),
            wait: 0,
        })
    }

    fn push(&mut self, event: &Event<'_>, late: Option<u64>) -> io::Result<()> {
        const V7: Layout = Layout {
            version: Version::V7,
            big_endian: false,
        };
        self.sequence += 1;
        let event = Event {
            sequence: self.sequence,
            ..*event
        };
        self.record.clear();
        encode(&event, V7, &mut self.record).map_err(io::Error::other)?;
        if let Some(wait) = late
            && self.late.is_empty()
        {
            std::mem::swap(&mut self.record, &mut self.late);
            self.wait = wait;
            return Ok(());
        }
        self.out.write_all(&self.record)?;
        self.wait = self.wait.saturating_sub(1);
        match self.wait {
            0 => self.write_late(),
            _ => Ok(()),
        }
    }

    fn write_late(&mut self) -> io::Result<()> {
        self.out.write_all(&self.late)?;
        self.late.clear();
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.write_late()?;
        self.out.flush()
    }
}
