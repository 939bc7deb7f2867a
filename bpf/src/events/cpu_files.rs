// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classic per-CPU files, for sources that hand over single records.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use mostrace_bundle::blk_io_trace::action::{BLK_TC_NOTIFY, tn};
use mostrace_bundle::blk_io_trace::{Event, Layout, Prefix, Version, encode};
use mostrace_bundle::layout;
use zerocopy::{FromBytes, LE};

use crate::error::{At, Result};

const COMM_LEN: usize = 16;
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
    /// When it was looked up, in the records' time.
    time_ns: u64,
    /// None if the task was gone by then.
    comm: Option<Vec<u8>>,
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
    /// blktrace notes it, goes before the task's first record, and before the first one after it changed.
    ///
    /// # Errors
    /// The bundle cannot be written.
    pub fn push(&mut self, cpu: u32, pid: u32, record: &mut [u8]) -> Result<()> {
        let file = match self.files.entry(cpu) {
            std::collections::btree_map::Entry::Occupied(e) => e.into_mut(),
            std::collections::btree_map::Entry::Vacant(e) => {
                e.insert(CpuFile::create(&self.dir, cpu)?)
            }
        };
        if let Some(mut note) = file.name_note(pid, cpu, record, comm) {
            file.write(&mut note)?;
        }
        file.write(record)?;
        self.events += 1;
        Ok(())
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
        })
    }

    /// The note that is due before `record`, at its time; `comm` looks a task's name up.
    fn name_note(
        &mut self,
        pid: u32,
        cpu: u32,
        record: &[u8],
        comm: impl FnOnce(u32) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let (prefix, _) = Prefix::<LE>::ref_from_prefix(record).ok()?;
        let time_ns = prefix.time.get();
        let known = self.named.get(&pid);
        if known.is_some_and(|named| time_ns.saturating_sub(named.time_ns) < NAMED_NS) {
            return None;
        }
        let noted = self.named.entry(pid).or_default();
        noted.time_ns = time_ns;
        let now = comm(pid).filter(|now| noted.comm.as_ref() != Some(now))?;
        let note = encode_note(pid, cpu, time_ns, &now);
        noted.comm = Some(now);
        note
    }

    fn write(&mut self, record: &mut [u8]) -> Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        if let Ok((prefix, _)) = Prefix::<LE>::mut_from_prefix(record) {
            prefix.sequence = self.sequence.into();
        }
        self.out.write_all(record).at(&self.path)
    }
}

/// `task->comm` of a task that still lives.
fn comm(pid: u32) -> Option<Vec<u8>> {
    let mut comm = fs::read(format!("/proc/{pid}/comm")).ok()?;
    comm.truncate(comm.strip_suffix(b"\n").unwrap_or(&comm).len());
    Some(comm)
}

/// BLK_TN_PROCESS, as v7. Its device is none.
fn encode_note(pid: u32, cpu: u32, time_ns: u64, comm: &[u8]) -> Option<Vec<u8>> {
    let mut pdu = [0; COMM_LEN];
    // The last byte stays a NUL.
    for (to, from) in pdu.iter_mut().take(COMM_LEN - 1).zip(comm) {
        *to = *from;
    }
    let event = Event {
        time_ns,
        action: BLK_TC_NOTIFY | tn::PROCESS,
        pid,
        cpu,
        pdu: &pdu,
        ..Event::default()
    };
    let v7 = Layout {
        version: Version::V7,
        big_endian: false,
    };
    let mut note = Vec::new();
    encode(&event, v7, &mut note).ok()?;
    Some(note)
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
    fn a_number_that_comes_back_as_anothers_is_named_anew() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = CpuFile::create(dir.path(), 0).unwrap();
        let mut noted = |time_ns: u64, name: Option<&str>| {
            let mut record = [0; 48];
            record[8..16].copy_from_slice(&time_ns.to_le_bytes());
            let comm = |_| name.map(|name| name.as_bytes().to_vec());
            let note = file.name_note(42, 0, &record, comm)?;
            let Decoded::Record(event, _) = decode(&note) else {
                panic!("no note: {note:?}")
            };
            assert_eq!((event.time_ns, event.pid), (time_ns, 42));
            Some(
                String::from_utf8_lossy(event.pdu)
                    .trim_end_matches('\0')
                    .to_owned(),
            )
        };
        assert_eq!(noted(5, Some("first")).as_deref(), Some("first"));
        assert_eq!(
            noted(6, Some("second")),
            None,
            "not looked up again so soon"
        );
        assert_eq!(noted(NAMED_NS + 5, Some("first")), None);
        assert_eq!(noted(2 * NAMED_NS + 5, None), None, "gone");
        let again = noted(3 * NAMED_NS + 5, Some("second"));
        assert_eq!(again.as_deref(), Some("second"));
    }
}
