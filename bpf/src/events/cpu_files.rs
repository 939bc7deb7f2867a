// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classic per-CPU files, for sources that hand over single records.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, btree_map};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use mostrace_bundle::blk_io_trace::action::{BLK_TC_NOTIFY, tn};
use mostrace_bundle::blk_io_trace::{Event, Layout, Prefix, Version, encode};
use mostrace_bundle::layout;
use zerocopy::{FromBytes, LE};

use crate::error::{At, Result};

const COMM_LEN: usize = 16;
type Comm = [u8; COMM_LEN];

#[derive(Debug)]
struct CpuFile {
    path: PathBuf,
    out: BufWriter<File>,
    sequence: u32,
    /// Threads, and the names that were noted of them.
    named: HashMap<u32, Comm>,
    /// The last of them.
    last: Option<u32>,
}

/// One file per CPU that had events.
#[derive(Debug)]
pub(crate) struct CpuFiles {
    dir: PathBuf,
    files: BTreeMap<u32, CpuFile>,
    events: u64,
}

impl CpuFiles {
    /// Files are made in `dir` as CPUs turn up.
    pub fn new(dir: &Path) -> CpuFiles {
        CpuFiles {
            dir: dir.to_owned(),
            files: BTreeMap::new(),
            events: 0,
        }
    }

    /// Appends one record, `blk_io_trace` or `blk_io_trace2` with its pdu, of a task `pid`
    /// that ran on `cpu`. Its sequence number is filled in here, and its task's name, as
    /// blktrace notes it, goes before the task's first record.
    ///
    /// # Errors
    /// The bundle cannot be written.
    pub fn push(&mut self, cpu: u32, pid: u32, record: &mut [u8]) -> Result<()> {
        let file = self.file(cpu)?;
        if file.last != Some(pid) {
            file.last = Some(pid);
            if let Entry::Vacant(unnamed) = file.named.entry(pid) {
                let comm = comm_of(pid);
                unnamed.insert(comm.unwrap_or_default());
                if let (Some(comm), Some(time_ns)) = (comm, time_of(record)) {
                    file.note(cpu, pid, time_ns, comm)?;
                }
            }
        }
        file.write(record)?;
        self.events += 1;
        Ok(())
    }

    /// Notes a task's name at the time, unless it is the one that it had.
    ///
    /// # Errors
    /// The bundle cannot be written.
    pub fn name(&mut self, cpu: u32, pid: u32, time_ns: u64, comm: &[u8]) -> Result<()> {
        let comm = padded(comm);
        let file = self.file(cpu)?;
        match file.named.insert(pid, comm) {
            Some(before) if before == comm => Ok(()),
            _ => file.note(cpu, pid, time_ns, comm),
        }
    }

    fn file(&mut self, cpu: u32) -> Result<&mut CpuFile> {
        Ok(match self.files.entry(cpu) {
            btree_map::Entry::Occupied(file) => file.into_mut(),
            btree_map::Entry::Vacant(none) => none.insert(CpuFile::create(&self.dir, cpu)?),
        })
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
        self.files
            .values_mut()
            .try_for_each(|f| f.out.flush().at(&f.path))
    }
}

impl CpuFile {
    fn create(dir: &Path, cpu: u32) -> Result<CpuFile> {
        let path = dir.join(layout::trace_of_cpu(cpu));
        let out = BufWriter::with_capacity(1 << 18, File::create(&path).at(&path)?);
        Ok(CpuFile {
            path,
            out,
            sequence: 0,
            named: HashMap::new(),
            last: None,
        })
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
            Ok(()) => self.write(&mut note),
            Err(_) => Ok(()),
        }
    }

    fn write(&mut self, record: &mut [u8]) -> Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        if let Ok((prefix, _)) = Prefix::<LE>::mut_from_prefix(record) {
            prefix.sequence = self.sequence.into();
        }
        self.out.write_all(record).at(&self.path)
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
        let mut files = CpuFiles::new(dir.path());
        let pid = std::process::id();
        let mut record = [7u8; 48];
        files.push(3, pid, &mut record).unwrap();
        files.push(3, pid, &mut record).unwrap();
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
        let mut files = CpuFiles::new(dir.path());
        let pid = std::process::id();
        for comm in [&b"sh"[..], b"sh\0\0", b"fio"] {
            files.name(0, pid, 5, comm).unwrap();
            files.push(0, pid, &mut [7; 48]).unwrap();
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
}
