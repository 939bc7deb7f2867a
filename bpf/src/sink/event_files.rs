// SPDX-License-Identifier: MIT OR Apache-2.0
//! The per-CPU event files `events.N`, for sources that deliver single records.

use std::collections::BTreeMap;

use mostrace_bundle::blk_io_trace::{Decoded, Prefix, decode};
use mostrace_bundle::{Folder, Zones};
use zerocopy::{FromBytes, LE};

use super::Retention;
use super::completions::Completions;
use super::cpu_file::{Comm, CpuFile, comm_at, padded, put_numbered};
use super::held_back::HeldBack;
use super::in_flight::{InFlight, Step};
use super::recent::Recent;
use crate::error::Result;

/// The room for the latest records, bytes; half of it is enough for the 40,000 events of some 8,000 requests.
const RECENT: usize = 4 << 20;

/// One file per CPU, up to the last CPU that had events. The files of CPUs without events are empty, as blktrace's are.
#[derive(Debug)]
pub(crate) struct EventFiles {
    folder: Folder,
    /// The files, by the CPU's number.
    files: Vec<CpuFile>,
    count: u64,
    recent: Recent,
    held: HeldBack<Held>,
    /// Requests in flight, if they are counted.
    in_flight: Option<InFlight>,
    zones: Zones,
}

/// A call to [`EventFiles`] that is held back.
#[derive(Debug)]
enum Held {
    /// A record.
    Record { cpu: u32, pid: u32, record: Vec<u8> },
    /// The name of a task.
    Name {
        cpu: u32,
        pid: u32,
        time_ns: u64,
        comm: Comm,
    },
}

/// The state of the events at the end of a segment.
pub(super) struct EventsEnd {
    /// The number of requests that are in flight at the end of the segment, if they are counted.
    pub unfinished: Option<u64>,
    /// The number of requests that the next segment repeats.
    pub under_way: u64,
    /// The latest completions of the segment.
    pub completions: Completions,
    /// The place in each file at which the next segment's own records begin.
    pub own_from: BTreeMap<String, u64>,
}

impl EventFiles {
    /// Makes files in `folder` as CPUs turn up, replacing those of a source that was tried before.
    pub fn new(folder: &Folder, retention: Retention) -> EventFiles {
        EventFiles {
            folder: folder.clone(),
            files: Vec::new(),
            count: 0,
            recent: Recent::new(retention.room(RECENT)),
            held: HeldBack::default(),
            in_flight: None,
            zones: Zones::default(),
        }
    }

    /// Sets the zones of the disk.
    pub fn set_zones(&mut self, zones: Zones) {
        self.zones = zones;
    }

    /// Begins to count the requests in flight, from what the source passes to [`EventFiles::follow`].
    pub fn count_in_flight(&mut self) {
        self.in_flight = Some(InFlight::of(self.zones));
    }

    /// Takes the next event of a request, before [`EventFiles::push`]; only for a source whose events come in time order. Returns
    /// false for a completion, or a requeue, whose issue was not seen. An event of the next segment is taken when that segment
    /// begins.
    pub fn follow(&mut self, time_ns: u64, step: Step) -> bool {
        match &mut self.in_flight {
            Some(in_flight) if !self.held.holds(time_ns) => in_flight.step(step),
            _ => true,
        }
    }

    /// Returns the number of requests in flight; None if they are not counted.
    pub fn in_flight(&self) -> Option<u64> {
        self.in_flight.as_ref().map(InFlight::count)
    }

    /// Appends one record, `blk_io_trace` or `blk_io_trace2` with its pdu, of a task `pid` that ran on `cpu`. Its sequence number
    /// is filled in here. Before a task's first record, its name is noted, as blktrace does.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn push(&mut self, cpu: u32, pid: u32, record: &[u8]) -> Result<()> {
        let time_ns = time_of(record).unwrap_or(0);
        self.push_made(cpu, pid, time_ns, |sequence, buffer| {
            put_numbered(record, sequence, buffer);
        })
    }

    /// Appends one record like [`EventFiles::push`], which `make` puts behind a buffer's contents, with the sequence number that it
    /// is given.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    #[inline]
    pub fn push_made(
        &mut self,
        cpu: u32,
        pid: u32,
        time_ns: u64,
        make: impl FnOnce(u32, &mut Vec<u8>),
    ) -> Result<()> {
        if self.held.holds(time_ns) {
            let mut record = Vec::new();
            make(0, &mut record);
            self.held.push(Held::Record { cpu, pid, record });
            return Ok(());
        }
        self.count += 1;
        if self.recent.has_room() {
            let mut record = Vec::new();
            make(0, &mut record);
            self.recent.push(time_ns, &record);
            return self.file_for(cpu, pid, time_ns)?.write(&record);
        }
        self.file_for(cpu, pid, time_ns)?.append(make)
    }

    /// Returns the file for a record of a task, whose name is noted there.
    #[inline]
    fn file_for(&mut self, cpu: u32, pid: u32, time_ns: u64) -> Result<&mut CpuFile> {
        let file = self.file(cpu)?;
        if file.is_due(pid, time_ns) {
            file.name(cpu, pid, time_ns, comm_at(pid, time_ns))?;
        }
        Ok(file)
    }

    /// Notes the name that a task has at this time, unless the file already has it.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn name(&mut self, cpu: u32, pid: u32, time_ns: u64, comm: &[u8]) -> Result<()> {
        let comm = padded(comm);
        if self.held.holds(time_ns) {
            self.held.push(Held::Name {
                cpu,
                pid,
                time_ns,
                comm,
            });
            return Ok(());
        }
        self.file(cpu)?.name(cpu, pid, time_ns, Some(comm))
    }

    #[inline]
    fn file(&mut self, cpu: u32) -> Result<&mut CpuFile> {
        let at = cpu as usize;
        if self.files.len() <= at {
            self.make_files(cpu)?;
        }
        Ok(&mut self.files[at])
    }

    /// Makes the missing files up to that of `cpu`.
    fn make_files(&mut self, cpu: u32) -> Result<()> {
        while self.files.len() <= cpu as usize {
            let next = u32::try_from(self.files.len()).unwrap_or(cpu);
            self.files.push(CpuFile::create(&self.folder, next)?);
        }
        Ok(())
    }

    /// From now on, holds back records of `at_ns` or later until [`EventFiles::begin_segment`].
    pub fn hold_from(&mut self, at_ns: u64) {
        self.held.begin(at_ns);
    }

    /// Continues into `folder`. The new files begin with the events of requests that have not completed, which are also in the
    /// files before, and with what was held back.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub(super) fn begin_segment(&mut self, folder: &Folder) -> Result<EventsEnd> {
        self.flush()?;
        let (since_ns, recent) = self.recent.take();
        let (completions, under_way) = Completions::split(since_ns, &recent, self.zones);
        let files = std::mem::take(&mut self.files);
        self.folder = folder.clone();
        self.count = 0;
        for (cpu, file) in (0..).zip(files) {
            self.file(cpu)?.inherit(file.into_names());
        }
        let mut requests = InFlight::of(self.zones);
        for (event, record) in under_way {
            requests.step(Step::of(&event));
            self.file_for(event.cpu, event.pid, event.time_ns)?
                .write(record)?;
            self.recent.push(event.time_ns, record);
        }
        self.flush()?;
        self.files.iter_mut().for_each(CpuFile::begin_anew);
        let own_from = self.files.iter().map(CpuFile::len);
        let end = EventsEnd {
            unfinished: self.in_flight(),
            under_way: requests.count(),
            completions,
            own_from: own_from.collect::<Result<_>>()?,
        };
        self.in_flight = self.in_flight.take().map(|_| requests);
        for held in self.held.take() {
            self.push_held(held)?;
        }
        Ok(end)
    }

    fn push_held(&mut self, held: Held) -> Result<()> {
        match held {
            Held::Record { cpu, pid, record } => {
                if let Decoded::Record(event, _) = decode(&record) {
                    self.follow(event.time_ns, Step::of(&event));
                }
                self.push(cpu, pid, &record)
            }
            Held::Name {
                cpu,
                pid,
                time_ns,
                comm,
            } => self.name(cpu, pid, time_ns, &comm),
        }
    }

    /// Returns the number of records in the segment so far, without repeated ones.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Passes buffered records to the kernel.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn flush(&mut self) -> Result<()> {
        self.files.iter_mut().try_for_each(CpuFile::flush)
    }
}

fn time_of(record: &[u8]) -> Option<u64> {
    let (prefix, _) = Prefix::<LE>::ref_from_prefix(record).ok()?;
    Some(prefix.time.get())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use mostrace_bundle::blk_io_trace::action::{BLK_TC_FS, BLK_TC_WRITE, ta, tn};
    use mostrace_bundle::blk_io_trace::{Event, Layout, Records, Then, Version, encode};
    use mostrace_bundle::layout;
    use mostrace_bundle::manifest::Device;

    use super::*;

    /// Returns the records of a CPU's file as blktrace writes them.
    fn plain(dir: &Path, cpu: u32) -> Vec<u8> {
        let file = fs::File::open(dir.join(layout::events_of_cpu(cpu))).unwrap();
        let (bytes, then) = Records::new(file).read_all().unwrap();
        assert_eq!(then, Then::End);
        bytes
    }

    /// A record of this time.
    fn record(time_ns: u64) -> Vec<u8> {
        let event = Event {
            time_ns,
            action: ta::QUEUE | BLK_TC_FS | BLK_TC_WRITE,
            ..Event::default()
        };
        let layout = Layout {
            version: Version::V7,
            big_endian: false,
        };
        let mut record = Vec::new();
        encode(&event, layout, &mut record).unwrap();
        record
    }

    #[test]
    fn a_task_is_named_once_per_cpu() {
        let dir = tempfile::tempdir().unwrap();
        let mut files = EventFiles::new(&Folder::open(dir.path()).unwrap(), Retention::of(false));
        let pid = std::process::id();
        // A name is looked up for what is not long ago.
        let time_ns = u64::from_le_bytes([7; 8]);
        let record = record(time_ns);
        files.push(3, pid, &record).unwrap();
        files.push(3, pid, &record).unwrap();
        files.flush().unwrap();
        let bytes = plain(dir.path(), 3);
        assert_eq!(bytes.len(), 64 + 48 + 48);
        let Decoded::Record(note, 64) = decode(&bytes) else {
            panic!("no note: {bytes:?}")
        };
        assert!(note.is_note() && note.act() == tn::PROCESS);
        assert_eq!((note.pid, note.cpu, note.sequence), (pid, 3, 1));
        assert_eq!(note.time_ns, time_ns);
        assert_eq!(bytes[64 + 4..64 + 8], 2u32.to_le_bytes());
        assert_eq!(files.count(), 2);
        for cpu in 0..3 {
            let before = fs::metadata(dir.path().join(layout::events_of_cpu(cpu)));
            assert_eq!(before.unwrap().len(), 0);
        }
    }

    /// The disk has zones in the next segment, too: an append is completed elsewhere in its zone.
    #[test]
    fn appends_are_followed_in_each_segment() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let mut files = EventFiles::new(&folder, Retention::of(true));
        files.set_zones(Zones::of(&Device {
            zone_sectors: Some(32768),
            ..Device::default()
        }));
        files.count_in_flight();
        for segment in 0..2 {
            let mut follow = |act, sector| {
                let action = act | BLK_TC_FS | BLK_TC_WRITE;
                let bytes = 4096;
                files.follow(
                    5,
                    Step {
                        action,
                        sector,
                        bytes,
                    },
                )
            };
            assert!(follow(ta::ISSUE, 32768));
            assert!(follow(ta::COMPLETE, 32768 + 800), "segment {segment}");
            assert_eq!(files.in_flight(), Some(0));
            files.begin_segment(&folder).unwrap();
        }
    }

    #[test]
    fn a_task_that_was_named_is_named_again_by_another_name_only() {
        let dir = tempfile::tempdir().unwrap();
        let mut files = EventFiles::new(&Folder::open(dir.path()).unwrap(), Retention::of(false));
        let pid = std::process::id();
        for comm in [&b"sh"[..], b"sh\0\0", b"fio"] {
            files.name(0, pid, 5, comm).unwrap();
            files.push(0, pid, &record(5)).unwrap();
        }
        files.flush().unwrap();
        let bytes = plain(dir.path(), 0);
        let note = |at: usize| match decode(&bytes[at..]) {
            Decoded::Record(note, 64) => String::from_utf8_lossy(note.pdu).into_owned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(bytes.len(), 64 + 2 * 48 + 64 + 48);
        assert!(note(0).starts_with("sh\0") && note(64 + 2 * 48).starts_with("fio\0"));
    }
}
