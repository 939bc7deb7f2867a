// SPDX-License-Identifier: MIT OR Apache-2.0
//! One CPU's file: its records one by one in time order, decoded in place in the buffer.

use super::error::{Error, Problem};
use mostrace_bundle::blk_io_trace::{Decoded, Event, Records, Then, decode};
use std::io::Read;
use std::path::PathBuf;

/// Bytes read at once. The buffers of a few CPUs should fit into one core's cache.
const BUFFER: usize = 1 << 17;

/// The number of records by which an event may come late in its own file and still be put in order. A record gets its time, then
/// its place. An interrupt that traces in between displaces it by one or two.
const WINDOW: usize = 64;

/// A file, or any other source of records.
pub(super) struct CpuFile {
    pub path: PathBuf,
    source: Records<Box<dyn Read + Send>>,
    /// Plain records.
    buffer: Vec<u8>,
    /// The start, in the buffer, of the bytes that are not yet in `order`; `offset` is the same place in a plain file.
    start: usize,
    offset: u64,
    /// What follows the bytes in the buffer.
    then: Then,
    /// The whole records in the buffer, sorted by time; records of equal time keep the file's order.
    order: Vec<Place>,
    /// Index of the first of them that was not returned yet.
    next: usize,
    /// Index of the first of them that an unread record may still precede.
    unsettled: usize,
    /// Time of the last event returned.
    last_ns: u64,
    /// Events returned after a later one, because they were out of order by more than the window.
    pub late: u64,
    /// Set if reading stopped before the end.
    pub problem: Option<Problem>,
    /// Kept to reuse its memory.
    kept: Vec<u8>,
}

/// A record in the buffer.
#[derive(Clone, Copy)]
struct Place {
    time_ns: u64,
    start: usize,
    len: usize,
}

impl CpuFile {
    pub fn new(path: PathBuf, source: Box<dyn Read + Send>) -> Self {
        Self {
            path,
            source: Records::new(source),
            buffer: Vec::new(),
            start: 0,
            offset: 0,
            then: Then::More,
            order: Vec::new(),
            next: 0,
            unsettled: 0,
            last_ns: 0,
            late: 0,
            problem: None,
            kept: Vec::new(),
        }
    }

    /// Returns the time of the next event, if it is in the buffer.
    #[inline]
    pub fn ready(&self) -> Option<u64> {
        if self.next >= self.unsettled {
            return None;
        }
        self.order.get(self.next).map(|place| place.time_ns)
    }

    /// Returns the time of the next event; None at the end or at a problem (then `problem` is set).
    pub fn peek(&mut self) -> Result<Option<u64>, Error> {
        while self.ready().is_none() && !self.is_over() {
            self.fill()?;
            self.sort();
        }
        Ok(self.ready())
    }

    /// Returns the next event, whose time [`Self::peek`] returned.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Event<'_>> {
        let Place { time_ns, start, .. } = *self.order.get(self.next)?;
        self.next = self.next.saturating_add(1);
        if time_ns < self.last_ns {
            self.late = self.late.saturating_add(1);
        } else {
            self.last_ns = time_ns;
        }
        match decode(self.buffer.get(start..)?) {
            Decoded::Record(event, _) => Some(event),
            Decoded::Short(_) | Decoded::Foreign(_) => None,
        }
    }

    /// Returns the bytes of records read so far.
    pub fn bytes_read(&self) -> u64 {
        self.source.expanded().unwrap_or(self.offset)
    }

    /// Returns true if everything readable is in `order`.
    fn is_over(&self) -> bool {
        self.problem.is_some() || self.then != Then::More && self.start == self.buffer.len()
    }

    /// Sorts newly read records into `order`.
    fn sort(&mut self) {
        while self.problem.is_none() {
            let unread = self.buffer.get(self.start..).unwrap_or_default();
            self.problem = match decode(unread) {
                Decoded::Record(event, len) => {
                    let place = Place {
                        time_ns: event.time_ns,
                        start: self.start,
                        len,
                    };
                    sort_in(&mut self.order, place);
                    self.start = self.start.saturating_add(len);
                    self.offset = self.offset.saturating_add(len.try_into().unwrap_or(0));
                    continue;
                }
                Decoded::Short(_) if unread.is_empty() => self.problem_behind(),
                Decoded::Short(_) if self.then == Then::More => break,
                Decoded::Short(needed) => Some(Problem::Truncated {
                    offset: self.offset,
                    needed,
                    left: unread.len(),
                }),
                Decoded::Foreign(magic) => Some(Problem::BadMagic {
                    magic,
                    offset: self.offset,
                }),
            };
            if unread.is_empty() {
                break;
            }
        }
        let open = if self.is_over() { 0 } else { WINDOW };
        self.unsettled = self.order.len().saturating_sub(open);
    }

    /// Returns the problem behind the bytes in the buffer.
    fn problem_behind(&self) -> Option<Problem> {
        match self.then {
            Then::More | Then::End => None,
            Then::Foreign { offset, magic } => Some(Problem::BadMagic { magic, offset }),
            Then::Cut {
                offset,
                needed,
                left,
            } => Some(Problem::Truncated {
                offset,
                needed,
                left,
            }),
        }
    }

    /// Reads on behind the records that were not returned yet.
    fn fill(&mut self) -> Result<(), Error> {
        self.keep_the_rest();
        self.then = self
            .source
            .read(BUFFER, &mut self.buffer)
            .map_err(|e| Error::io(&self.path, e))?;
        Ok(())
    }

    /// Moves the waiting records and the bytes of an incomplete record to the front of the buffer.
    fn keep_the_rest(&mut self) {
        self.kept.clear();
        self.order.drain(..self.next.min(self.order.len()));
        self.next = 0;
        self.unsettled = 0;
        for place in &mut self.order {
            let end = place.start.saturating_add(place.len);
            let record = self.buffer.get(place.start..end).unwrap_or_default();
            place.start = self.kept.len();
            self.kept.extend_from_slice(record);
        }
        let start = self.kept.len();
        let unread = self.buffer.get(self.start..).unwrap_or_default();
        self.kept.extend_from_slice(unread);
        std::mem::swap(&mut self.buffer, &mut self.kept);
        self.start = start;
    }

    /// Returns the number of bytes from the problem to the end of the file.
    pub fn left_out(&mut self) -> Result<u64, Error> {
        let left = self.source.left();
        let left = left.map_err(|e| Error::io(&self.path, e))?;
        let unread = self.buffer.len().saturating_sub(self.start);
        Ok(left.saturating_add(unread.try_into().unwrap_or(0)))
    }
}

/// Puts the file's next record in its place among the last [`WINDOW`] records.
#[inline]
fn sort_in(order: &mut Vec<Place>, place: Place) {
    if order
        .last()
        .is_some_and(|last| last.time_ns > place.time_ns)
    {
        let open = order.len().saturating_sub(WINDOW);
        let earlier = order.get(open..).map_or(0, |window| {
            window.partition_point(|p| p.time_ns <= place.time_ns)
        });
        order.insert(open.saturating_add(earlier), place);
    } else {
        order.push(place);
    }
}
