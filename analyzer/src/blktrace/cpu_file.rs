// SPDX-License-Identifier: MIT OR Apache-2.0
//! One CPU's file: its records one by one, in time order.

use super::error::{Error, Problem};
use super::event::Event;
use super::record::{Decoded, MAX_RECORD, decode};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::path::PathBuf;

/// Bytes read at once; room for several of the longest records.
const BUFFER: usize = 4 * MAX_RECORD;

/// How many records an event may come late by in its own file and still be put in order. An
/// interrupt that traces between a record's time and its place in the buffer displaces it by one
/// or two.
const WINDOW: usize = 64;

/// A file, or any other source of records.
pub(super) struct CpuFile {
    pub path: PathBuf,
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// The unread part of the buffer.
    start: usize,
    end: usize,
    /// Where in the file `start` is.
    offset: u64,
    at_end: bool,
    /// The next records, sorted by time; of equal times the earlier in the file is first.
    window: VecDeque<Event>,
    /// Time of the last event handed out.
    last_ns: u64,
    /// Events handed out after a later one, being further out of order than the window.
    pub late: u64,
    /// Set when the reading stopped ahead of the end.
    pub problem: Option<Problem>,
}

impl CpuFile {
    pub fn new(path: PathBuf, source: Box<dyn Read + Send>) -> Self {
        Self {
            path,
            source,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            offset: 0,
            at_end: false,
            window: VecDeque::with_capacity(WINDOW + 1),
            last_ns: 0,
            late: 0,
            problem: None,
        }
    }

    /// Time of the next event; None at the end, or at a problem (then `problem` is set).
    pub fn peek(&mut self) -> Result<Option<u64>, Error> {
        while self.window.len() <= WINDOW {
            match self.read()? {
                Some(event) => self.sort_in(event),
                None => break,
            }
        }
        Ok(self.window.front().map(|e| e.time_ns))
    }

    /// The next event, which [`Self::peek`] has seen.
    pub fn pop(&mut self) -> Option<Event> {
        let event = self.window.pop_front()?;
        if event.time_ns < self.last_ns {
            self.late += 1;
        } else {
            self.last_ns = event.time_ns;
        }
        Some(event)
    }

    fn sort_in(&mut self, event: Event) {
        if self
            .window
            .back()
            .is_none_or(|b| b.time_ns <= event.time_ns)
        {
            self.window.push_back(event);
        } else {
            let at = self.window.partition_point(|e| e.time_ns <= event.time_ns);
            self.window.insert(at, event);
        }
    }

    fn read(&mut self) -> Result<Option<Event>, Error> {
        while self.problem.is_none() {
            let unread = self.buffer.get(self.start..self.end).unwrap_or_default();
            self.problem = Some(match decode(unread) {
                Decoded::Record(event, len) => {
                    self.start += len;
                    self.offset += len as u64;
                    return Ok(Some(event));
                }
                Decoded::Short(_) if !self.at_end => {
                    self.fill()?;
                    continue;
                }
                Decoded::Short(_) if unread.is_empty() => break,
                Decoded::Short(needed) => Problem::Truncated {
                    offset: self.offset,
                    needed,
                    left: unread.len(),
                },
                Decoded::Foreign(magic) => Problem::BadMagic {
                    magic,
                    offset: self.offset,
                },
            });
        }
        Ok(None)
    }

    fn fill(&mut self) -> Result<(), Error> {
        self.buffer.resize(BUFFER, 0);
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let room = self.buffer.get_mut(self.end..).unwrap_or_default();
        match self.source.read(room) {
            Ok(0) => self.at_end = true,
            Ok(n) => self.end += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io(&self.path, e)),
        }
        Ok(())
    }

    /// Bytes from the problem to the end of the file.
    pub fn left_out(&mut self) -> Result<u64, Error> {
        let rest = std::io::copy(&mut self.source, &mut std::io::sink())
            .map_err(|e| Error::io(&self.path, e))?;
        Ok(rest + (self.end - self.start) as u64)
    }
}
