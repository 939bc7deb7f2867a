// SPDX-License-Identifier: MIT OR Apache-2.0
//! The buffers of an instance of tracefs.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::{At, Error, Result};

mod buffer;
mod ring_page;

pub(crate) use buffer::{Buffer, PAGE_MAX};

/// More bytes than the text of a buffer's counters needs.
const STATS_MAX: usize = 4096;

/// The kernel's counters of one CPU's buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stats {
    /// The number of events that nobody has read.
    pub entries: u64,
    /// The number of events that anybody has read since the buffer was last emptied.
    pub read: u64,
    /// The number of events that were overwritten or dropped since.
    pub lost: u64,
}

impl Stats {
    /// Reads the counters of the buffer whose folder is `folder`, `per_cpu/cpuN`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if a counter is missing from it.
    pub fn read(folder: &Path) -> Result<Stats> {
        let file = folder.join("stats");
        let mut text = [0; STATS_MAX];
        // The kernel generates the text anew for each read() (tracing_stats_read), with other numbers of other lengths.
        let len = File::open(&file).at(&file)?.read(&mut text).at(&file)?;
        let stats = str::from_utf8(&text[..len]).ok().and_then(Stats::parse);
        stats.ok_or_else(|| Error::malformed(file.display(), "not all counters of a buffer"))
    }

    /// Parses the counters; None if one is missing or is not a number.
    fn parse(text: &str) -> Option<Stats> {
        let count = |name: &str| {
            let named = |line: &str| line.strip_prefix(name)?.strip_prefix(": ")?.parse().ok();
            text.lines().find_map(named)
        };
        let lost: [Option<u64>; 3] = ["overrun", "commit overrun", "dropped events"].map(count);
        Some(Stats {
            entries: count("entries")?,
            read: count("read events")?,
            lost: lost
                .into_iter()
                .try_fold(0, |sum: u64, lost| sum.checked_add(lost?))?,
        })
    }
}

/// Returns the folders of the CPUs' buffers, by CPU.
///
/// # Errors
/// Returns an error if the folder cannot be listed.
pub(crate) fn buffers(tracefs: &Path) -> Result<Vec<(u32, PathBuf)>> {
    let dir = tracefs.join("per_cpu");
    let mut buffers = Vec::new();
    for entry in fs::read_dir(&dir).at(&dir)? {
        let name = entry.at(&dir)?.file_name();
        let cpu = name.to_str().and_then(|n| n.strip_prefix("cpu"));
        if let Some(cpu) = cpu.and_then(|n| n.parse().ok()) {
            buffers.push((cpu, dir.join(&name)));
        }
    }
    buffers.sort();
    Ok(buffers)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stats_are_told_by_their_names() {
        let text = "entries: 5\noverrun: 2\ncommit overrun: 1\nbytes: 99\noldest event ts: 4.5\n\
                    now ts: 678.147291\ndropped events: 4\nread events: 6";
        let expected = Stats {
            entries: 5,
            read: 6,
            lost: 7,
        };
        assert_eq!(Stats::parse(text), Some(expected));
    }

    #[test]
    fn stats_of_two_reads_are_none() {
        // Two reads gave this while the buffer was filling, on 6.18.
        let text = "entries: 9\noverrun: 0\ncommit oveoverrun: 0\nbytes: 48216\noldest event ts: 4.5\n\
                    now ts: 17333.478681\ndropped events: 0\nread events: 0\n";
        assert_eq!(Stats::parse(text), None);
    }

    proptest! {
        #[test]
        fn any_text_has_stats(text: String) {
            Stats::parse(&text);
        }
    }
}
