// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Android's kernels charge to each user for the pages that its processes made dirty: `/proc/uid_io/stats`.
//!
//! Android's own limits on writes go by these numbers, which have neither the journal nor metadata in them. A line is
//! `uid rchar wchar read_bytes write_bytes rchar wchar read_bytes write_bytes fsync fsync`, first for the foreground, then for the
//! background (`drivers/misc/uid_sys_stats.c`).

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Bytes charged since the machine was started, by user.
type Charged = BTreeMap<u32, u64>;

/// The file, and what it said last.
#[derive(Debug)]
pub struct UidIo {
    path: PathBuf,
    last: Option<Charged>,
}

impl Default for UidIo {
    fn default() -> UidIo {
        UidIo::at("/proc/uid_io/stats".into())
    }
}

impl UidIo {
    /// Reads the file for the first time. Kernels other than Android's have none, and nothing is charged then.
    #[must_use]
    pub fn at(path: PathBuf) -> UidIo {
        let last = read(&path);
        UidIo { path, last }
    }

    /// Returns the bytes that were charged since the last time.
    pub fn since_last(&mut self) -> Charged {
        let now = read(&self.path);
        let mut charged = Charged::new();
        if let (Some(last), Some(now)) = (&self.last, &now) {
            let more = now.iter().map(|(uid, bytes)| {
                let before = last.get(uid).copied().unwrap_or(0);
                (*uid, bytes.saturating_sub(before))
            });
            charged.extend(more.filter(|(_, bytes)| *bytes > 0));
        }
        self.last = now.or(self.last.take());
        charged
    }
}

fn read(path: &PathBuf) -> Option<Charged> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.lines().filter_map(parse).collect())
}

/// Parses a line. Lines for single tasks, which debug kernels add, begin with a word and are left out.
fn parse(line: &str) -> Option<(u32, u64)> {
    let mut fields = line.split_ascii_whitespace();
    let uid = fields.next()?.parse().ok()?;
    let fields: Option<Vec<u64>> = fields.map(|field| field.parse().ok()).collect();
    let fields = fields?;
    let (foreground, background) = (fields.get(3)?, fields.get(7)?);
    Some((uid, foreground.saturating_add(*background)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_those_since_the_last_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stats");
        assert!(UidIo::at(path.clone()).since_last().is_empty());
        fs::write(&path, "0 1 2 3 4096 5 6 7 0 9 10\n").unwrap();
        let mut uid_io = UidIo::at(path.clone());
        let later = "0 1 2 3 8192 5 6 7 4096 9 10\ntask,sh,12 x\n10123 0 0 0 0 0 0 0 512 0 0\n";
        fs::write(&path, later).unwrap();
        assert_eq!(uid_io.since_last(), [(0, 8192), (10123, 512)].into());
        assert!(uid_io.since_last().is_empty());
        fs::remove_file(&path).unwrap();
        assert!(uid_io.since_last().is_empty());
    }
}
