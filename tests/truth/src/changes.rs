// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log of changes: every writer says of every range of a file that it changed who it is and when it did so.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use anyhow::Context;

use crate::names::Inode;
use crate::stamp::now_ns;

/// One change of a file's contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// It began after `time_ns.start` and was over before `time_ns.end`, CLOCK_MONOTONIC.
    pub time_ns: Range<u64>,
    /// The process that made it.
    pub tgid: u32,
    pub inode: Inode,
    /// The bytes of the file that it changed.
    pub range: Range<u64>,
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

    /// Makes a change of this range of a file, and logs it. It is a single write, so that lines of several processes stay
    /// whole.
    pub fn make<T>(
        &self,
        (ino, generation): Inode,
        range: Range<u64>,
        change: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let start_ns = now_ns();
        let done = change()?;
        let (end_ns, tgid) = (now_ns(), std::process::id());
        let Range { start, end } = range;
        let line = format!("{start_ns} {end_ns} {tgid} {ino} {generation} {start} {end}\n");
        (&self.out).write_all(line.as_bytes())?;
        Ok(done)
    }
}

/// Reads the log.
pub fn read(path: &Path) -> anyhow::Result<Vec<Change>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    text.lines().map(change).collect()
}

fn change(line: &str) -> anyhow::Result<Change> {
    let numbers: Result<Vec<u64>, _> = line.split(' ').map(str::parse).collect();
    match numbers.with_context(|| line.to_owned())?[..] {
        [from_ns, to_ns, tgid, ino, generation, start, end] => Ok(Change {
            time_ns: from_ns..to_ns,
            tgid: tgid.try_into()?,
            inode: (ino, generation.try_into()?),
            range: start..end,
        }),
        _ => anyhow::bail!("not understood: {line}"),
    }
}
