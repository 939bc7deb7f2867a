// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classic per-CPU files, for sources that hand over single records.

use std::collections::{BTreeMap, HashMap, btree_map};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use mostrace_bundle::blk_io_trace::action::{BLK_TC_NOTIFY, tn};
use mostrace_bundle::blk_io_trace::{Event, Layout, Prefix, Version, encode};
use mostrace_bundle::{Folder, layout};
use zerocopy::{FromBytes, LE};

use crate::error::{At, Result};

const COMM_LEN: usize = 16;
type Comm = [u8; COMM_LEN];
/// How long the name of a task is taken to be the same, ns: the task may run another program, or end and leave its number
/// to another one, which takes longer.
const NAMED_NS: u64 = 1_000_000_000;

#[derive(Debug)]
struct CpuFile {
    path: PathBuf,
    out: BufWriter<File>,
    sequence: u32,
    named: HashMap<u32, Named>,
}

/// A task's name as it was noted.
#[derive(Debug, Default)]
struct Named {
    /// When it was looked up or told, in the records' time.
    time_ns: u64,
    /// None if the task was gone by then.
    comm: Option<Comm>,
}

/// One file per CPU that had events.
#[derive(Debug)]
pub(crate) struct CpuFiles {
    folder: Folder,
    files: BTreeMap<u32, CpuFile>,
    events: u64,
}

impl CpuFiles {
    /// Files are made in `folder` as CPUs turn up, in place of those of a source that was tried before.
    pub fn new(folder: &Folder) -> CpuFiles {
        CpuFiles {
            folder: folder.clone(),
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
        if let Some(time_ns) = time_of(record)
            && file.is_due(pid, time_ns)
        {
            file.name(cpu, pid, time_ns, comm_of(pid))?;
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
        self.file(cpu)?.name(cpu, pid, time_ns, Some(padded(comm)))
    }

    fn file(&mut self, cpu: u32) -> Result<&mut CpuFile> {
        Ok(match self.files.entry(cpu) {
            btree_map::Entry::Occupied(file) => file.into_mut(),
            btree_map::Entry::Vacant(none) => none.insert(CpuFile::create(&self.folder, cpu)?),
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
    fn create(folder: &Folder, cpu: u32) -> Result<CpuFile> {
        let name = layout::trace_of_cpu(cpu);
        let path = folder.path().join(&name);
        let out = BufWriter::with_capacity(1 << 18, folder.replace(&name)?);
        Ok(CpuFile {
            path,
            out,
            sequence: 0,
            named: HashMap::new(),
        })
    }

    /// Whether the name of a task is to be looked up.
    fn is_due(&self, pid: u32, time_ns: u64) -> bool {
        let fresh = |named: &Named| time_ns.saturating_sub(named.time_ns) < NAMED_NS;
        !self.named.get(&pid).is_some_and(fresh)
    }

    /// Notes the name of a task, if it is known and another one than before.
    fn name(&mut self, cpu: u32, pid: u32, time_ns: u64, comm: Option<Comm>) -> Result<()> {
        let named = self.named.entry(pid).or_default();
        named.time_ns = time_ns;
        match comm {
            Some(comm) if named.comm != Some(comm) => {
                named.comm = Some(comm);
                self.note(cpu, pid, time_ns, comm)
            }
            _ => Ok(()),
        }
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
        let mut files = CpuFiles::new(&Folder::open(dir.path()).unwrap());
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
        let mut files = CpuFiles::new(&Folder::open(dir.path()).unwrap());
        let pid = std::process::id();
        for comm in [&b"sh"[..], b"sh\0\0", b"fio"] {
            files.name(0, pid, 5, comm).unwrap();
            files.push(0, pid, &mut [0; 48]).unwrap();
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
