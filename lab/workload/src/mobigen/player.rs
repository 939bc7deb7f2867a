// SPDX-License-Identifier: MIT OR Apache-2.0
//! One thread of a script: each of its lines is one system call, whatever the earlier ones returned.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::fs::Access;

use super::files::{Files, open};
use super::tally::Tally;
use mostrace_replay::mobigen::{Flags, Line, ScriptCall as Call};

/// One thread of a script.
pub(super) struct Player {
    thread: u32,
    pub lines: Vec<Line>,
    pub tally: Tally,
    opened: u64,
    buffer: Vec<u8>,
}

impl Player {
    pub fn new(thread: u32, lines: Vec<Line>) -> Self {
        Self {
            thread,
            lines,
            tally: Tally::default(),
            opened: 0,
            buffer: Vec::new(),
        }
    }

    /// Makes the call of a line and counts its result.
    pub fn play(&mut self, line: &Line, files: &Files) {
        let result = match self.call(line, files) {
            Ok(bytes) => i64::try_from(bytes).unwrap_or(i64::MAX),
            Err(_) => -1,
        };
        self.tally.add(line, result);
    }

    /// Makes the call. Returns the bytes of a read or write, and 0 for other calls.
    fn call(&mut self, line: &Line, files: &Files) -> io::Result<usize> {
        let done = |_| 0;
        match &line.call {
            Call::Open { path, flags } => self.open(line, path, *flags, files).map(done),
            Call::Close(descriptor) => close(*descriptor, files).map(done),
            Call::Write { descriptor, offset } => {
                let (file, data) = (file(line, *descriptor, files), self.bytes(line.bytes()));
                match offset {
                    Some(offset) => file.write_at(data, *offset),
                    None => (&*file).write(data),
                }
            }
            Call::Read { descriptor, offset } => {
                let (file, data) = (file(line, *descriptor, files), self.bytes(line.bytes()));
                match offset {
                    Some(offset) => file.read_at(data, *offset),
                    None => (&*file).read(data),
                }
            }
            Call::Fsync(descriptor) => files.get(*descriptor).sync_all().map(done),
            Call::Fdatasync(descriptor) => files.get(*descriptor).sync_data().map(done),
            Call::Fstat(descriptor) => Ok(rustix::fs::fstat(&*files.get(*descriptor)).map(|_| 0)?),
            Call::Access(path) => {
                Ok(rustix::fs::access(files.below(path), Access::EXISTS).map(done)?)
            }
            Call::Stat(path) => Ok(rustix::fs::stat(files.below(path)).map(|_| 0)?),
            Call::Lstat(path) => Ok(rustix::fs::lstat(files.below(path)).map(|_| 0)?),
            Call::Unlink(path) => Ok(rustix::fs::unlink(files.below(path)).map(done)?),
        }
    }

    /// Opens a file. If the application could not open it, the call is made so that it does not create the file.
    fn open(&mut self, line: &Line, path: &str, flags: Flags, files: &Files) -> io::Result<()> {
        if line.failed() {
            let refused = Flags {
                writes: false,
                creates: false,
                ..flags
            };
            files.put(None, open(&files.below(path), refused)?);
            return Ok(());
        }
        let place = match path.starts_with('"') {
            true => files.below(path),
            false => {
                let number = self.opened;
                self.opened = self.opened.saturating_add(1);
                files.own(self.thread, number)
            }
        };
        files.put(line.result, open(&place, flags)?);
        Ok(())
    }

    fn bytes(&mut self, bytes: usize) -> &mut [u8] {
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes, 0xa5);
        }
        self.buffer.get_mut(..bytes).unwrap_or_default()
    }
}

/// Returns the file for a call. A call that failed in the application, for example a read from an empty pipe, fails
/// here too.
fn file(line: &Line, descriptor: i64, files: &Files) -> Arc<File> {
    match line.failed() {
        true => files.nowhere(),
        false => files.get(descriptor),
    }
}

/// Closes a descriptor. If it is not a file of the replay, for example a socket, a duplicate is made and closed
/// instead.
fn close(descriptor: i64, files: &Files) -> io::Result<()> {
    match files.take(descriptor) {
        Some(file) => drop(file),
        None => drop(files.nowhere().try_clone()?),
    }
    Ok(())
}
