// SPDX-License-Identifier: MIT OR Apache-2.0
//! Contents of sectors that cannot be stamped: whoever writes them logs a checksum of each, and what its stamp would
//! say.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;

use crate::names::Inode;
use crate::stamp::{How, Stamp};

/// Returns a checksum of a sector's bytes.
pub fn checksum(sector: &[u8]) -> u64 {
    // This hasher gives the same result in every process of this program.
    let mut hasher = DefaultHasher::new();
    hasher.write(sector);
    hasher.finish()
}

/// The log to which writers append.
pub struct Writer {
    out: File,
}

impl Writer {
    pub fn open(path: &Path) -> io::Result<Writer> {
        let out = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Writer { out })
    }

    /// Logs sectors that are being written: their checksums and what their stamps would say. It is a single write, so
    /// that lines of several processes stay whole.
    pub fn note(&self, sectors: &[(u64, Stamp)]) -> io::Result<()> {
        let line = |(checksum, s): &(u64, Stamp)| {
            let how = s.how as u32;
            format!(
                "{checksum} {} {} {} {} {} {} {how}\n",
                s.ino, s.generation, s.offset, s.time_ns, s.pid, s.tid
            )
        };
        let lines: String = sectors.iter().map(line).collect();
        (&self.out).write_all(lines.as_bytes())
    }

    /// Logs that a file is written through a mapping too, so that its contents are not logged.
    pub fn mapped(&self, (ino, generation): Inode) -> io::Result<()> {
        (&self.out).write_all(format!("mapped {ino} {generation}\n").as_bytes())
    }
}

/// Everything that was logged.
#[derive(Default)]
pub struct Contents {
    by_checksum: HashMap<u64, Vec<Stamp>>,
    mapped: HashSet<Inode>,
}

impl Contents {
    pub fn read(path: &Path) -> anyhow::Result<Contents> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let mut contents = Contents::default();
        for line in text.lines() {
            contents.take(line).with_context(|| line.to_owned())?;
        }
        Ok(contents)
    }

    fn take(&mut self, line: &str) -> Option<()> {
        if let Some(inode) = line.strip_prefix("mapped ") {
            let (ino, generation) = inode.split_once(' ')?;
            self.mapped
                .insert((ino.parse().ok()?, generation.parse().ok()?));
            return Some(());
        }
        let fields: Result<Vec<u64>, _> = line.split(' ').map(str::parse).collect();
        let [checksum, ino, generation, offset, time_ns, pid, tid, how] = fields.ok()?[..] else {
            return None;
        };
        let stamp = Stamp {
            ino,
            generation: generation.try_into().ok()?,
            offset,
            time_ns,
            pid: pid.try_into().ok()?,
            tid: tid.try_into().ok()?,
            how: How::of(how.try_into().ok()?)?,
        };
        self.by_checksum.entry(checksum).or_default().push(stamp);
        Some(())
    }

    /// Returns who wrote a sector with this checksum by `to_ns`. Several files and places may hold the same contents:
    /// the last one that `fits` is returned, or the last one if none does.
    pub fn find(&self, checksum: u64, to_ns: u64, fits: impl Fn(&Stamp) -> bool) -> Option<Stamp> {
        let known = self.by_checksum.get(&checksum)?.iter();
        let by_then = known.filter(|s| s.time_ns <= to_ns);
        by_then.max_by_key(|s| (fits(s), s.time_ns)).copied()
    }

    /// Returns true if the contents of the file are not known.
    pub fn is_mapped(&self, ino: Option<u64>, generation: Option<u32>) -> bool {
        let inode = ino.zip(generation);
        inode.is_some_and(|inode| self.mapped.contains(&inode))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_is_known_by_its_checksum_file_and_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("contents");
        let stamp = |ino, offset, time_ns| Stamp {
            ino,
            offset,
            time_ns,
            generation: 7,
            pid: 3,
            tid: 4,
            how: How::Buffered,
        };
        let (one, again) = (stamp(12, 0, 10), stamp(12, 0, 30));
        let (other, late) = (stamp(13, 512, 20), stamp(13, 512, 90));
        let sum = checksum(&[5; 512]);
        let writer = Writer::open(&path).unwrap();
        writer
            .note(&[one, other, again, late].map(|s| (sum, s)))
            .unwrap();
        writer.mapped((14, 8)).unwrap();
        let contents = Contents::read(&path).unwrap();
        let of = |ino| move |s: &Stamp| s.ino == ino;
        assert_eq!(contents.find(sum, 50, of(12)), Some(again));
        assert_eq!(contents.find(sum, 25, of(12)), Some(one));
        assert_eq!(contents.find(sum, 50, of(13)), Some(other));
        assert_eq!(contents.find(sum, 50, of(14)), Some(again));
        assert_eq!(contents.find(sum, 5, of(12)), None);
        assert_eq!(contents.find(sum + 1, 50, of(12)), None);
        assert!(contents.is_mapped(Some(14), Some(8)));
        assert!(!contents.is_mapped(Some(14), None));
    }
}
