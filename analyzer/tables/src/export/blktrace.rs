// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the events as blktrace does: a file for each CPU, for blkparse, btt and all that read its files.
//!
//! A record has version 7, or 8 if its action has more than 32 bits, in little-endian order.

use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use mostrace_bundle::Bundle;
use mostrace_bundle::blk_io_trace::action::tn;
use mostrace_bundle::blk_io_trace::{EncodeError, Layout, Version, encode};

use super::error::{Error, Result};
use super::left_out::counted;
use crate::facts::{Key, hashed};
use mostrace_trace::blktrace::{self, Event};
use mostrace_trace::output::{Output, WriteError};
use mostrace_trace::recording::{self, Recording};
use mostrace_trace::tally::Tally;

/// The most CPUs, each of which has an open file; a damaged trace may name any number.
const CPUS: u32 = 512;
/// The length of a process's name in a note, bytes; the last one is a NUL.
const COMM: usize = 16;

/// Writes the events of CPU N to `BASENAME.blktrace.N`, and an empty file for each lower CPU without events, because blkparse stops
/// at the first number without a file. Returns lines about missing events. With a key, the names of processes are hashed, and
/// messages, which may contain names, are left out.
///
/// # Errors
/// Returns an error if the events cannot be read or a file cannot be written.
pub fn write(recording: &Recording, key: Option<&Key>, basename: &Path) -> Result<Vec<String>> {
    let mut trace = recording.events()?;
    let mut files = Files {
        basename: basename.to_owned(),
        read: read(recording)?,
        of_cpus: Vec::new(),
    };
    let mut record = Vec::new();
    let (mut hidden, mut beyond) = (0_u64, 0_u64);
    while let Some(event) = trace.next().map_err(recording::Error::from)? {
        if event.cpu >= CPUS {
            beyond.tally(1);
            continue;
        }
        let Some(name) = Name::of(&event, key) else {
            hidden.tally(1);
            continue;
        };
        record.clear();
        // A payload that was read from a record fits into one.
        if put(&name.told(event), &mut record).is_ok() {
            files.put(event.cpu, &record)?;
        }
    }
    let stale = files.end()?;
    let [missing, told] = recording.told(trace.notices());
    let left_out = counted(&[
        (hidden, "messages are left out, as they may hold names"),
        (beyond, "events are left out, of CPUs beyond 512"),
    ]);
    Ok([missing, told, left_out, stale].concat())
}

fn put(event: &Event<'_>, record: &mut Vec<u8>) -> std::result::Result<(), EncodeError> {
    let layout = |version| Layout {
        version,
        big_endian: false,
    };
    match encode(event, layout(Version::V7), record) {
        Err(EncodeError::Action) => encode(event, layout(Version::V8), record),
        done => done,
    }
}

/// An event may tell the name of a process.
enum Name {
    /// It tells nothing that is hidden.
    Plain,
    /// The name is written as its hash.
    Hashed([u8; COMM]),
}

impl Name {
    /// Returns None for a message that must be hidden.
    fn of(event: &Event<'_>, key: Option<&Key>) -> Option<Name> {
        let Some(key) = key.filter(|_| event.is_note()) else {
            return Some(Name::Plain);
        };
        match event.act() {
            tn::MESSAGE => None,
            tn::PROCESS => {
                let comm = event.pdu.split(|&byte| byte == 0).next();
                let mut told = [0; COMM];
                let hash = hashed(key, comm.unwrap_or_default());
                for (to, digit) in told.iter_mut().take(COMM - 1).zip(&hash) {
                    *to = *digit;
                }
                Some(Name::Hashed(told))
            }
            _ => Some(Name::Plain),
        }
    }

    fn told<'a>(&'a self, event: Event<'a>) -> Event<'a> {
        match self {
            Name::Plain => event,
            Name::Hashed(comm) => Event { pdu: comm, ..event },
        }
    }
}

/// A file, by its device and inode.
type Inode = (u64, u64);

fn inode(path: &Path) -> Option<Inode> {
    let metadata = path.metadata().ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// Returns the files that the events are read from.
fn read(recording: &Recording) -> Result<Vec<Inode>> {
    let bare = match recording.bundles() {
        [] => blktrace::find(recording.path()).map_err(recording::Error::from)?,
        _ => Vec::new(),
    };
    let files = recording.bundles().iter().flat_map(Bundle::event_files);
    Ok(files.chain(&bare).filter_map(|path| inode(path)).collect())
}

/// The files, by the CPU's number.
struct Files {
    basename: PathBuf,
    /// The files that are read meanwhile.
    read: Vec<Inode>,
    of_cpus: Vec<Output>,
}

impl Files {
    fn put(&mut self, cpu: u32, record: &[u8]) -> Result<()> {
        let at = usize::try_from(cpu).unwrap_or(usize::MAX);
        while self.of_cpus.len() <= at {
            self.add()?;
        }
        match self.of_cpus.get_mut(at) {
            // The output knows which file it was.
            Some(file) => match file.write_all(record) {
                Err(error) => Ok(file.end(Err(error))?),
                Ok(()) => Ok(()),
            },
            None => Ok(()),
        }
    }

    /// Returns the path of the next CPU's file.
    fn next(&self) -> PathBuf {
        let mut path = self.basename.clone().into_os_string();
        path.push(format!(".blktrace.{}", self.of_cpus.len()));
        path.into()
    }

    /// Makes the next CPU's file.
    fn add(&mut self) -> std::result::Result<(), WriteError> {
        let path = self.next();
        if inode(&path).is_some_and(|inode| self.read.contains(&inode)) {
            return Err(WriteError::Io {
                name: path.display().to_string(),
                source: io::Error::other("the events are read from it"),
            });
        }
        self.of_cpus.push(Output::create(Some(&path))?);
        Ok(())
    }

    /// Completes the files. Returns a line if there is a file of a further CPU, from another trace.
    fn end(mut self) -> Result<Vec<String>> {
        if self.of_cpus.is_empty() {
            self.add()?;
        }
        for file in &mut self.of_cpus {
            file.end(Ok::<(), Error>(()))?;
        }
        let next = self.next();
        let is_stale = inode(&next).is_some();
        let line = || {
            format!(
                "blkparse will read {}, too, which is another trace's",
                next.display()
            )
        };
        Ok(is_stale.then(line).into_iter().collect())
    }
}
