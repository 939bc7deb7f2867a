// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classic per-CPU files, for sources that hand over single records.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use mostrace_bundle::blk_io_trace::action::{BLK_TC_NOTIFY, tn};
use mostrace_bundle::blk_io_trace::{Event, Layout, Prefix, Version, encode};
use mostrace_bundle::{Folder, layout};
use zerocopy::{FromBytes, LE};

use crate::error::{At, Result};

const COMM_LEN: usize = 16;

#[derive(Debug)]
struct CpuFile {
    path: PathBuf,
    out: BufWriter<File>,
    sequence: u32,
    named: HashSet<u32>,
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
        let file = match self.files.entry(cpu) {
            std::collections::btree_map::Entry::Occupied(e) => e.into_mut(),
            std::collections::btree_map::Entry::Vacant(e) => {
                e.insert(CpuFile::create(&self.folder, cpu)?)
            }
        };
        if file.named.insert(pid)
            && let Some(mut note) = name_note(pid, cpu, record)
        {
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
    fn create(folder: &Folder, cpu: u32) -> Result<CpuFile> {
        let name = layout::trace_of_cpu(cpu);
        let path = folder.path().join(&name);
        let out = BufWriter::with_capacity(1 << 18, folder.replace(&name)?);
        Ok(CpuFile {
            path,
            out,
            sequence: 0,
            named: HashSet::new(),
        })
    }

    fn write(&mut self, record: &mut [u8]) -> Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        if let Ok((prefix, _)) = Prefix::<LE>::mut_from_prefix(record) {
            prefix.sequence = self.sequence.into();
        }
        self.out.write_all(record).at(&self.path)
    }
}

/// BLK_TN_PROCESS for a task that still lives, as v7, at the time of `record`. Its device is none.
fn name_note(pid: u32, cpu: u32, record: &[u8]) -> Option<Vec<u8>> {
    let (prefix, _) = Prefix::<LE>::ref_from_prefix(record).ok()?;
    let comm = fs::read(format!("/proc/{pid}/comm")).ok()?;
    let comm = comm.strip_suffix(b"\n").unwrap_or(&comm);
    let mut pdu = [0; COMM_LEN];
    // The last byte stays a NUL.
    for (to, from) in pdu.iter_mut().take(COMM_LEN - 1).zip(comm) {
        *to = *from;
    }
    let event = Event {
        time_ns: prefix.time.get(),
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
}
