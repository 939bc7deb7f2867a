// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the requests that were issued and never completed, from a recording's event files.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use mostrace_bundle::blk_io_trace::{Decoded, decode};
use mostrace_bundle::{Folder, Zones};

use super::event_files_in;
use super::in_flight::{InFlight, Step};
use crate::error::{At, Result};

const PIECE: usize = 1 << 20;

/// Counts the requests in the event files in `folder`, of a disk with these zones.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub(crate) fn count(folder: &Folder, zones: Zones) -> Result<u64> {
    let names = event_files_in(folder)?;
    let mut files = names
        .iter()
        .map(|name| CpuFile::open(folder, name))
        .collect::<Result<Vec<_>>>()?;
    let mut heads = BinaryHeap::new();
    for (index, file) in files.iter_mut().enumerate() {
        heads.extend(file.next()?.map(|head| Reverse((head.0, index, head.1))));
    }
    let mut requests = InFlight::of(zones);
    while let Some(Reverse((_, index, step))) = heads.pop() {
        requests.step(step);
        if let Some(file) = files.get_mut(index) {
            heads.extend(file.next()?.map(|head| Reverse((head.0, index, head.1))));
        }
    }
    Ok(requests.count())
}

/// The file of one CPU, read in pieces.
struct CpuFile {
    path: PathBuf,
    file: File,
    bytes: Vec<u8>,
    at: usize,
}

impl CpuFile {
    fn open(folder: &Folder, name: &str) -> Result<CpuFile> {
        Ok(CpuFile {
            path: folder.path().join(name),
            file: folder.read(name)?,
            bytes: Vec::new(),
            at: 0,
        })
    }

    /// Returns the next event that is not a note, and its time; None if the file ends, or continues with something else.
    fn next(&mut self) -> Result<Option<(u64, Step)>> {
        loop {
            let short = match decode(&self.bytes[self.at..]) {
                Decoded::Record(event, len) => {
                    self.at += len;
                    if !event.is_note() {
                        return Ok(Some((event.time_ns, Step::of(&event))));
                    }
                    false
                }
                Decoded::Short(_) => true,
                Decoded::Foreign(_) => return Ok(None),
            };
            if short && !self.read_on()? {
                return Ok(None);
            }
        }
    }

    /// Reads the next piece. Returns false at the end of the file.
    fn read_on(&mut self) -> Result<bool> {
        self.bytes.drain(..self.at);
        self.at = 0;
        let piece = (&self.file).take(PIECE as u64);
        let read = { piece }.read_to_end(&mut self.bytes).at(&self.path)?;
        Ok(read > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use mostrace_bundle::blk_io_trace::action::{BLK_TC_FS, BLK_TC_WRITE, ta};
    use mostrace_bundle::blk_io_trace::{Event, Layout, Version, encode};
    use mostrace_bundle::layout;

    use super::*;

    fn count_in(dir: &Path) -> u64 {
        count(&Folder::open(dir).unwrap(), Zones::default()).unwrap()
    }

    fn put(dir: &Path, cpu: u32, events: &[(u64, u64, u64)]) {
        let v7 = Layout {
            version: Version::V7,
            big_endian: false,
        };
        let mut bytes = Vec::new();
        for &(time_ns, act, sector) in events {
            let event = Event {
                time_ns,
                sector,
                bytes: 4096,
                action: act | BLK_TC_FS | BLK_TC_WRITE,
                ..Event::default()
            };
            encode(&event, v7, &mut bytes).unwrap();
        }
        fs::write(dir.join(layout::trace_of_cpu(cpu)), bytes).unwrap();
    }

    #[test]
    fn cpus_are_read_in_the_order_of_time() {
        let dir = tempfile::tempdir().unwrap();
        put(
            dir.path(),
            0,
            &[(1, ta::ISSUE, 8), (3, ta::ISSUE, 8), (6, ta::ISSUE, 16)],
        );
        assert_eq!(count_in(dir.path()), 3);
        put(dir.path(), 3, &[(2, ta::COMPLETE, 8), (5, ta::COMPLETE, 8)]);
        assert_eq!(count_in(dir.path()), 1);
    }

    #[test]
    fn long_files_are_read_in_pieces() {
        let dir = tempfile::tempdir().unwrap();
        let many = (0..100_000).map(|i| (i, [ta::ISSUE, ta::COMPLETE][i as usize % 2], i / 2 * 8));
        let mut many: Vec<_> = many.collect();
        many.pop();
        put(dir.path(), 0, &many);
        assert_eq!(count_in(dir.path()), 1);
    }
}
