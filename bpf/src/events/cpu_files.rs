// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classic per-CPU files, for sources that hand over single records.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use foldhash::fast::RandomState;
use mostrace_bundle::blk_io_trace::action::{BLK_TC_NOTIFY, ta, tn};
use mostrace_bundle::blk_io_trace::{Decoded, Event, Layout, Prefix, Version, decode, encode};
use mostrace_bundle::{Folder, layout};
use zerocopy::{FromBytes, LE};

use super::Cut;
use super::in_flight::{InFlight, Step};
use crate::cut::{Ends, Part, Recent};
use crate::error::{At, Result};

const COMM_LEN: usize = 16;
type Comm = [u8; COMM_LEN];
/// How long the name of a task is taken to be the same, ns: the task may run another program, or end and leave its number
/// to another one, which takes longer.
const NAMED_NS: u64 = 1_000_000_000;
/// So many tasks' names are known at most, of each CPU; then all are looked up anew.
const NAMES: usize = 1 << 16;
/// Of each file so much waits at most until it is written, bytes.
const BUFFER: usize = 1 << 18;
/// What is kept of the last records, bytes: at least half of it, which 40,000 events of some 8,000 requests take.
const RECENT: usize = 4 << 20;

#[derive(Debug)]
struct CpuFile {
    path: PathBuf,
    file: File,
    /// Records that are not in the file yet.
    buffer: Vec<u8>,
    sequence: u32,
    named: HashMap<u32, Named, RandomState>,
    /// The task of the last record, whose name need not be looked up until then: most records follow one of the same.
    fresh: Fresh,
}

#[derive(Clone, Copy, Debug, Default)]
struct Fresh {
    pid: u32,
    until_ns: u64,
}

/// A task's name.
#[derive(Debug, Default)]
struct Named {
    /// When it was looked up or told, in the records' time.
    time_ns: u64,
    /// None if the task was gone by then.
    comm: Option<Comm>,
    /// Whether it is noted in this file.
    noted: bool,
}

/// One file per CPU that had events.
#[derive(Debug)]
pub(crate) struct CpuFiles {
    folder: Folder,
    /// By the CPU's number.
    files: Vec<Option<CpuFile>>,
    events: u64,
    recent: Recent,
    /// While a cut is made: what is of this time or later is of the next segment, and kept back.
    next_from_ns: Option<u64>,
    next: Vec<Pushed>,
}

/// What was pushed, and kept back.
#[derive(Debug)]
pub(crate) enum Pushed {
    /// A record.
    Record { cpu: u32, pid: u32, record: Vec<u8> },
    /// A task's name.
    Name {
        cpu: u32,
        pid: u32,
        time_ns: u64,
        comm: Comm,
    },
}

impl CpuFiles {
    /// Files are made in `folder` as CPUs turn up, in place of those of a source that was tried before. If the recording
    /// `is_cut`, [`CpuFiles::cut`] will be called.
    pub fn new(folder: &Folder, is_cut: bool) -> CpuFiles {
        CpuFiles {
            folder: folder.clone(),
            files: Vec::new(),
            events: 0,
            recent: Recent::new(if is_cut { RECENT } else { 0 }),
            next_from_ns: None,
            next: Vec::new(),
        }
    }

    /// Appends one record, `blk_io_trace` or `blk_io_trace2` with its pdu, of a task `pid`
    /// that ran on `cpu`. Its sequence number is filled in here, and its task's name, as
    /// blktrace notes it, goes before the task's first record.
    ///
    /// # Errors
    /// The bundle cannot be written.
    #[inline]
    pub fn push(&mut self, cpu: u32, pid: u32, record: &[u8]) -> Result<()> {
        let time_ns = time_of(record).unwrap_or(0);
        if self.keeps_back(time_ns) {
            let record = record.to_vec();
            self.next.push(Pushed::Record { cpu, pid, record });
            return Ok(());
        }
        self.write(cpu, pid, time_ns, record)?;
        self.recent.push(time_ns, record);
        self.events += 1;
        Ok(())
    }

    #[inline]
    fn write(&mut self, cpu: u32, pid: u32, time_ns: u64, record: &[u8]) -> Result<()> {
        let file = self.file(cpu)?;
        if file.is_due(pid, time_ns) {
            file.name(cpu, pid, time_ns, comm_of(pid))?;
        }
        file.write(record)
    }

    /// Notes a task's name at the time, unless it is the one that it had.
    ///
    /// # Errors
    /// The bundle cannot be written.
    pub fn name(&mut self, cpu: u32, pid: u32, time_ns: u64, comm: &[u8]) -> Result<()> {
        let comm = padded(comm);
        if self.keeps_back(time_ns) {
            self.next.push(Pushed::Name {
                cpu,
                pid,
                time_ns,
                comm,
            });
            return Ok(());
        }
        self.file(cpu)?.name(cpu, pid, time_ns, Some(comm))
    }

    /// Whether what is of this time is of the next segment.
    pub fn keeps_back(&self, time_ns: u64) -> bool {
        self.next_from_ns.is_some_and(|from| time_ns >= from)
    }

    #[inline]
    fn file(&mut self, cpu: u32) -> Result<&mut CpuFile> {
        let at = cpu as usize;
        if at >= self.files.len() {
            self.files.resize_with(at + 1, || None);
        }
        match &mut self.files[at] {
            Some(file) => Ok(file),
            none => Ok(none.insert(CpuFile::create(&self.folder, cpu)?)),
        }
    }

    /// From now on keeps back what is of `at_ns` or later, until [`CpuFiles::take_next`].
    pub fn keep_from(&mut self, at_ns: u64) {
        self.next_from_ns = Some(at_ns);
    }

    /// Goes on in `folder`, with what was not kept back. What it begins with is there already in the files before: the events of requests whose
    /// completion is not.
    ///
    /// # Errors
    /// The bundle cannot be written.
    pub fn cut(&mut self, folder: &Folder) -> Result<Cut> {
        self.flush()?;
        let (since_ns, recent) = self.recent.take();
        let (ends, under_way) = under_way(since_ns, &recent);
        let files = std::mem::take(&mut self.files);
        self.folder = folder.clone();
        let events = std::mem::take(&mut self.events);
        for (cpu, file) in (0..).zip(files) {
            if let Some(file) = file {
                self.file(cpu)?.inherit(file.named);
            }
        }
        let mut requests = InFlight::default();
        for (event, record) in under_way {
            requests.step(Step::of(&event));
            self.write(event.cpu, event.pid, event.time_ns, record)?;
            self.recent.push(event.time_ns, record);
        }
        self.flush()?;
        let own_from = self.files.iter().flatten().map(CpuFile::len);
        let own_from = own_from.collect::<Result<_>>()?;
        Ok(Cut {
            events,
            unfinished: None,
            ends,
            requests,
            own_from,
        })
    }

    /// What was kept back, to be pushed once more after [`CpuFiles::cut`].
    pub fn take_next(&mut self) -> Vec<Pushed> {
        self.next_from_ns = None;
        std::mem::take(&mut self.next)
    }

    /// Takes what was kept back.
    ///
    /// # Errors
    /// The bundle cannot be written.
    pub fn push_again(&mut self, pushed: Pushed) -> Result<()> {
        match pushed {
            Pushed::Record { cpu, pid, record } => self.push(cpu, pid, &record),
            Pushed::Name {
                cpu,
                pid,
                time_ns,
                comm,
            } => self.name(cpu, pid, time_ns, &comm),
        }
    }

    /// Records pushed.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Hands what is buffered to the kernel.
    ///
    /// # Errors
    /// The bundle cannot be written.
    pub fn flush(&mut self) -> Result<()> {
        self.files.iter_mut().flatten().try_for_each(CpuFile::flush)
    }
}

/// What completed in a stretch of records, and the events of what did not, in the order of time.
fn under_way(since_ns: u64, recent: &[u8]) -> (Ends, Vec<(Event<'_>, &[u8])>) {
    let mut events = Vec::new();
    let mut rest = recent;
    while let Decoded::Record(event, len) = decode(rest) {
        let (record, behind) = rest.split_at(len);
        events.push((event, record));
        rest = behind;
    }
    events.sort_by_key(|(event, _)| event.time_ns);
    let is_end = |event: &Event<'_>| event.act() == ta::COMPLETE;
    let completions = events.iter().filter(|(event, _)| is_end(event));
    let mut ends = Ends::new(
        since_ns,
        completions.filter_map(|(event, _)| Part::of(event)),
    );
    events.reverse();
    events.retain(|(event, _)| {
        !is_end(event) && Part::of(event).is_some_and(|part| !ends.end(&part))
    });
    events.reverse();
    (ends, events)
}

impl CpuFile {
    fn create(folder: &Folder, cpu: u32) -> Result<CpuFile> {
        let name = layout::trace_of_cpu(cpu);
        let path = folder.path().join(&name);
        let file = folder.replace(&name)?;
        Ok(CpuFile {
            path,
            file,
            buffer: Vec::with_capacity(BUFFER),
            sequence: 0,
            named: HashMap::default(),
            fresh: Fresh::default(),
        })
    }

    /// Whether the name of a task is to be looked up.
    #[inline]
    fn is_due(&mut self, pid: u32, time_ns: u64) -> bool {
        if self.fresh.pid == pid && time_ns < self.fresh.until_ns {
            return false;
        }
        let named = self.named.get(&pid).filter(|named| named.noted);
        let until_ns = named.map_or(0, |named| named.time_ns.saturating_add(NAMED_NS));
        self.fresh = Fresh { pid, until_ns };
        time_ns >= until_ns
    }

    /// Notes the name of a task, if it is known and another one than the file has.
    fn name(&mut self, cpu: u32, pid: u32, time_ns: u64, comm: Option<Comm>) -> Result<()> {
        if self.named.len() >= NAMES {
            self.named.clear();
        }
        let named = self.named.entry(pid).or_default();
        named.time_ns = time_ns;
        let is_new = !named.noted || comm.is_some_and(|comm| named.comm != Some(comm));
        named.comm = comm.or(named.comm);
        named.noted = true;
        match named.comm {
            Some(comm) if is_new => self.note(cpu, pid, time_ns, comm),
            _ => Ok(()),
        }
    }

    /// Takes the names over from the file before, for tasks that have gone since. Those go that were not needed there.
    fn inherit(&mut self, names: HashMap<u32, Named, RandomState>) {
        let known = names.into_iter().filter(|(_, named)| named.noted);
        self.named = known
            .map(|(pid, named)| {
                let named = Named {
                    noted: false,
                    ..named
                };
                (pid, named)
            })
            .collect();
    }

    /// Its name and length, once all is flushed.
    fn len(&self) -> Result<(String, u64)> {
        let len = self.file.metadata().at(&self.path)?.len();
        let name = self.path.file_name().unwrap_or_default();
        Ok((name.to_string_lossy().into_owned(), len))
    }

    /// BLK_TN_PROCESS, as v7. Its device is none.
    fn note(&mut self, cpu: u32, pid: u32, time_ns: u64, comm: Comm) -> Result<()> {
        let event = Event {
            time_ns,
            action: BLK_TC_NOTIFY | tn::PROCESS,
            pid,
            cpu,
            pdu: &comm,
            ..Event::default()
        };
        let v7 = Layout {
            version: Version::V7,
            big_endian: false,
        };
        let mut note = Vec::new();
        // It has a short payload and no more than 32 bits of action.
        match encode(&event, v7, &mut note) {
            Ok(()) => self.write(&note),
            Err(_) => Ok(()),
        }
    }

    #[inline]
    fn write(&mut self, record: &[u8]) -> Result<()> {
        if self.buffer.len() + record.len() > BUFFER {
            self.flush()?;
        }
        let at = self.buffer.len();
        self.buffer.extend_from_slice(record);
        self.sequence = self.sequence.wrapping_add(1);
        if let Ok((prefix, _)) = Prefix::<LE>::mut_from_prefix(&mut self.buffer[at..]) {
            prefix.sequence = self.sequence.into();
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write_all(&self.buffer).at(&self.path)?;
        self.buffer.clear();
        Ok(())
    }
}

fn time_of(record: &[u8]) -> Option<u64> {
    let (prefix, _) = Prefix::<LE>::ref_from_prefix(record).ok()?;
    Some(prefix.time.get())
}

/// The name of a task that still lives.
fn comm_of(pid: u32) -> Option<Comm> {
    let comm = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(padded(comm.strip_suffix(b"\n").unwrap_or(&comm)))
}

/// The last byte stays a NUL.
fn padded(comm: &[u8]) -> Comm {
    let mut padded = [0; COMM_LEN];
    for (to, from) in padded.iter_mut().take(COMM_LEN - 1).zip(comm) {
        *to = *from;
    }
    padded
}

#[cfg(test)]
mod tests {
    use super::*;
    use mostrace_bundle::blk_io_trace::{Decoded, decode};

    #[test]
    fn a_task_is_named_once_per_cpu() {
        let dir = tempfile::tempdir().unwrap();
        let mut files = CpuFiles::new(&Folder::open(dir.path()).unwrap(), false);
        let pid = std::process::id();
        let record = [7u8; 48];
        files.push(3, pid, &record).unwrap();
        files.push(3, pid, &record).unwrap();
        files.flush().unwrap();
        let bytes = fs::read(dir.path().join("trace.blktrace.3")).unwrap();
        assert_eq!(bytes.len(), 64 + 48 + 48);
        let Decoded::Record(note, 64) = decode(&bytes) else {
            panic!("no note: {bytes:?}")
        };
        assert!(note.is_note() && note.act() == tn::PROCESS);
        assert_eq!((note.pid, note.cpu, note.sequence), (pid, 3, 1));
        assert_eq!(note.time_ns, u64::from_le_bytes([7; 8]));
        assert_eq!(bytes[64 + 4..64 + 8], 2u32.to_le_bytes());
        assert_eq!(files.events(), 2);
    }

    #[test]
    fn a_task_that_was_named_is_named_again_by_another_name_only() {
        let dir = tempfile::tempdir().unwrap();
        let mut files = CpuFiles::new(&Folder::open(dir.path()).unwrap(), false);
        let pid = std::process::id();
        for comm in [&b"sh"[..], b"sh\0\0", b"fio"] {
            files.name(0, pid, 5, comm).unwrap();
            files.push(0, pid, &[0; 48]).unwrap();
        }
        files.flush().unwrap();
        let bytes = fs::read(dir.path().join("trace.blktrace.0")).unwrap();
        let note = |at: usize| match decode(&bytes[at..]) {
            Decoded::Record(note, 64) => String::from_utf8_lossy(note.pdu).into_owned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(bytes.len(), 64 + 2 * 48 + 64 + 48);
        assert!(note(0).starts_with("sh\0") && note(64 + 2 * 48).starts_with("fio\0"));
    }

    #[test]
    fn a_number_that_comes_back_as_anothers_is_named_anew() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = CpuFile::create(&Folder::open(dir.path()).unwrap(), 0).unwrap();
        let mut named = |time_ns: u64, comm: Option<&str>| {
            let due = file.is_due(42, time_ns);
            let before = file.sequence;
            if due {
                let comm = comm.map(|comm| padded(comm.as_bytes()));
                file.name(0, 42, time_ns, comm).unwrap();
            }
            (due, file.sequence - before)
        };
        assert_eq!(named(5, Some("first")), (true, 1));
        assert_eq!(named(6, Some("second")), (false, 0));
        assert_eq!(named(NAMED_NS + 5, Some("first")), (true, 0));
        assert_eq!(named(2 * NAMED_NS + 5, None), (true, 0), "gone");
        assert_eq!(named(3 * NAMED_NS + 5, Some("second")), (true, 1));
    }
}
