// SPDX-License-Identifier: MIT OR Apache-2.0
//! The event file of one CPU, with the names of the tasks in its records.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use foldhash::fast::RandomState;
use mostrace_bundle::blk_io_trace::action::{BLK_TC_NOTIFY, tn};
use mostrace_bundle::blk_io_trace::compact::Compactor;
use mostrace_bundle::blk_io_trace::{Event, Layout, Prefix, Version, encode};
use mostrace_bundle::{Folder, layout};
use rustix::time::ClockId;
use zerocopy::{FromBytes, LE};

use super::owner::now_ns;
use crate::error::{At, Result};

const COMM_LEN: usize = 16;
/// The name of a task, padded with NULs.
pub(super) type Comm = [u8; COMM_LEN];
/// The time for which a task's name is taken to stay the same, ns. The task may run another program, or it may end and leave its
/// number to another task, which takes longer.
const NAMED_NS: u64 = 1_000_000_000;
/// The most tasks whose names are kept for a CPU; after that, all are looked up anew.
const NAMES: usize = 1 << 16;
/// The most bytes that are buffered before they are written: more than the events of a batch of a ring. And the room that is left then
/// for the next record; a longer one makes the buffer grow.
const BUFFER: usize = 1 << 17;
const LONGEST: usize = 1 << 10;

/// The event file of one CPU.
#[derive(Debug)]
pub(super) struct CpuFile {
    path: PathBuf,
    file: File,
    /// Makes records compact.
    compactor: Box<Compactor>,
    /// A record, to reuse its memory.
    record: Vec<u8>,
    /// Compact records that are not yet in the file.
    buffer: Vec<u8>,
    sequence: u32,
    named: TaskNames,
    /// The task of the last record, and the time until which its name need not be looked up; most records follow one of the same
    /// task.
    fresh: Fresh,
}

/// The names of tasks, by process number.
pub(super) type TaskNames = HashMap<u32, Named, RandomState>;

#[derive(Clone, Copy, Debug, Default)]
struct Fresh {
    pid: u32,
    until_ns: u64,
}

/// The name of a task.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// The time when the name was looked up or noted, in the records' clock.
    time_ns: u64,
    /// The name; None if the task had ended by then.
    comm: Option<Comm>,
    /// True once the name was noted in this file.
    noted: bool,
}

impl CpuFile {
    /// Makes the file of `cpu` in `folder`, replacing that of a source that was tried before.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn create(folder: &Folder, cpu: u32) -> Result<CpuFile> {
        let name = layout::events_of_cpu(cpu);
        let path = folder.path().join(&name);
        let file = folder.replace(&name)?;
        Ok(CpuFile {
            path,
            file,
            compactor: Box::default(),
            record: Vec::with_capacity(LONGEST),
            buffer: Vec::with_capacity(BUFFER),
            sequence: 0,
            named: HashMap::default(),
            fresh: Fresh::default(),
        })
    }

    /// Returns true if the name of a task must be looked up.
    #[inline]
    pub fn is_due(&mut self, pid: u32, time_ns: u64) -> bool {
        if self.fresh.pid == pid && time_ns < self.fresh.until_ns {
            return false;
        }
        let named = self.named.get(&pid).filter(|named| named.noted);
        let until_ns = named.map_or(0, |named| named.time_ns.saturating_add(NAMED_NS));
        self.fresh = Fresh { pid, until_ns };
        time_ns >= until_ns
    }

    /// Notes the name of a task, if it is known and differs from the one in the file.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn name(&mut self, cpu: u32, pid: u32, time_ns: u64, comm: Option<Comm>) -> Result<()> {
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

    /// Takes over the names from the segment before, for tasks that have ended since. Names that were not noted there are dropped.
    pub fn inherit(&mut self, names: TaskNames) {
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

    /// Returns the names that the next segment's file inherits.
    pub fn into_names(self) -> TaskNames {
        self.named
    }

    /// From now on, refers to nothing that is in the file already.
    pub fn begin_anew(&mut self) {
        *self.compactor = Compactor::default();
    }

    /// Returns the file's name and its length without what is buffered.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn len(&self) -> Result<(String, u64)> {
        let len = self.file.metadata().at(&self.path)?.len();
        let name = self.path.file_name().unwrap_or_default();
        Ok((name.to_string_lossy().into_owned(), len))
    }

    /// Writes a BLK_TN_PROCESS note of version 7, which names no device.
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
        // The note has a short payload, and its action fits into 32 bits.
        match encode(&event, v7, &mut note) {
            Ok(()) => self.write(&note),
            Err(_) => Ok(()),
        }
    }

    /// Appends a record after filling in its sequence number.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn write(&mut self, record: &[u8]) -> Result<()> {
        self.append(|sequence, buffer| put_numbered(record, sequence, buffer))
    }

    /// Appends a record, which `make` puts into an empty buffer, with the sequence number that it is given.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    #[inline]
    pub fn append(&mut self, make: impl FnOnce(u32, &mut Vec<u8>)) -> Result<()> {
        if self.buffer.len() > BUFFER - LONGEST {
            self.flush()?;
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.record.clear();
        make(self.sequence, &mut self.record);
        self.compactor.put(&self.record, &mut self.buffer);
        Ok(())
    }

    /// Passes buffered records to the kernel.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn flush(&mut self) -> Result<()> {
        self.file.write_all(&self.buffer).at(&self.path)?;
        self.buffer.clear();
        Ok(())
    }
}

/// Puts a record with this sequence number behind what is in the buffer.
pub(super) fn put_numbered(record: &[u8], sequence: u32, buffer: &mut Vec<u8>) {
    let at = buffer.len();
    buffer.extend_from_slice(record);
    if let Ok((prefix, _)) = Prefix::<LE>::mut_from_prefix(&mut buffer[at..]) {
        prefix.sequence = sequence.into();
    }
}

/// Returns the name of a task that had this number at `time_ns`, CLOCK_MONOTONIC; None if that is so long ago that the number may be
/// another task's by now, or if the task has ended.
pub(super) fn comm_at(pid: u32, time_ns: u64) -> Option<Comm> {
    let age_ns = now_ns(ClockId::Monotonic).saturating_sub(time_ns);
    if age_ns > NAMED_NS {
        return None;
    }
    let comm = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(padded(comm.strip_suffix(b"\n").unwrap_or(&comm)))
}

/// Pads a name with NULs; the last byte stays a NUL.
pub(super) fn padded(comm: &[u8]) -> Comm {
    let mut padded = [0; COMM_LEN];
    for (to, from) in padded.iter_mut().take(COMM_LEN - 1).zip(comm) {
        *to = *from;
    }
    padded
}

#[cfg(test)]
mod tests {
    use super::*;

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
