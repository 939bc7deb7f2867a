// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that `blkparse -d` wrote. The times of events count from the first event; those of notes do not.
//!
//! The kernel notes a thread's name right before the thread's first event, so the difference between the two is the time that was
//! taken away, to within the microseconds between note and event.

use super::error::Error;
use mostrace_bundle::blk_io_trace::action::tn;
use mostrace_bundle::blk_io_trace::{Decoded, Event, decode};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

/// The bytes in which the first notes and events are looked for.
const HEAD: usize = 1 << 20;
/// An event that is so much older than a note before it, ns, is in another clock.
const APART_NS: u64 = 1_000_000_000;
/// Byte offset of `time` in a record.
const TIME: usize = 8;

/// Returns what must be added to the times of a file's events, ns; None if they are in the notes' clock.
pub fn shift(path: &Path, file: &mut File) -> Result<Option<u64>, Error> {
    let read = |file: &mut File| {
        let mut head = Vec::new();
        file.take(HEAD.try_into().unwrap_or(u64::MAX))
            .read_to_end(&mut head)?;
        file.rewind()?;
        Ok(head)
    };
    let head = read(file).map_err(|error: io::Error| Error::io(path, error))?;
    Ok(shift_of(&head))
}

fn shift_of(head: &[u8]) -> Option<u64> {
    let mut noted: HashMap<u32, u64> = HashMap::new();
    let mut last_note = 0;
    let mut rest = head;
    while let Decoded::Record(event, len) = decode(rest) {
        if is_absolute(&event) {
            last_note = event.time_ns;
            if event.act() == tn::PROCESS {
                noted.entry(event.pid).or_insert(event.time_ns);
            }
        } else {
            if event.time_ns.saturating_add(APART_NS) >= last_note {
                return None;
            }
            if let Some(note) = noted.get(&event.pid) {
                return note.checked_sub(event.time_ns);
            }
        }
        rest = rest.get(len..)?;
    }
    None
}

/// Returns true for a note whose time blkparse leaves as it is: a name or a timestamp.
fn is_absolute(event: &Event<'_>) -> bool {
    event.is_note() && event.act() != tn::MESSAGE
}

/// Reads records and moves the times of events.
pub struct Shifted<R> {
    source: R,
    by_ns: u64,
    /// Read from the source; up to `ready` it is moved, and up to `taken` returned.
    buffer: Vec<u8>,
    ready: usize,
    taken: usize,
}

impl<R: Read> Shifted<R> {
    pub fn new(source: R, by_ns: u64) -> Shifted<R> {
        Shifted {
            source,
            by_ns,
            buffer: Vec::new(),
            ready: 0,
            taken: 0,
        }
    }

    /// Reads on until there is a whole record, or to the end.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.taken.min(self.buffer.len()));
        (self.ready, self.taken) = (0, 0);
        while self.ready == 0 {
            let before = self.buffer.len();
            let chunk = HEAD.try_into().unwrap_or(u64::MAX);
            (&mut self.source)
                .take(chunk)
                .read_to_end(&mut self.buffer)?;
            self.shift();
            if self.buffer.len() == before {
                // The rest is no record; what follows says so.
                self.ready = before;
                return Ok(());
            }
        }
        Ok(())
    }

    fn shift(&mut self) {
        loop {
            let rest = self.buffer.get_mut(self.ready..).unwrap_or_default();
            let Decoded::Record(event, len) = decode(rest) else {
                if matches!(decode(rest), Decoded::Foreign(_)) {
                    self.ready = self.buffer.len();
                }
                return;
            };
            let moved = (!is_absolute(&event)).then(|| event.time_ns.saturating_add(self.by_ns));
            let bytes = match event.big_endian {
                true => moved.map(u64::to_be_bytes),
                false => moved.map(u64::to_le_bytes),
            };
            let field = rest.get_mut(TIME..).and_then(|rest| rest.first_chunk_mut());
            if let (Some(field), Some(bytes)) = (field, bytes) {
                *field = bytes;
            }
            self.ready = self.ready.saturating_add(len);
        }
    }
}

impl<R: Read> Read for Shifted<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.ready {
            self.fill()?;
        }
        let ready = self.buffer.get(self.taken..self.ready).unwrap_or_default();
        let len = ready.len().min(buf.len());
        if let (Some(to), Some(from)) = (buf.get_mut(..len), ready.get(..len)) {
            to.copy_from_slice(from);
        }
        self.taken = self.taken.saturating_add(len);
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn case(name: &str) -> Vec<u8> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/data");
        std::fs::read(folder.join(name)).unwrap()
    }

    #[test]
    fn what_blkparse_made_relative_is_made_absolute() {
        let (plain, relative) = (case("plain.blktrace.0"), case("blkparse-d.bin"));
        assert_eq!(shift_of(&plain), None);
        let by_ns = shift_of(&relative).unwrap();
        let mut back = Vec::new();
        Shifted::new(&relative[..], by_ns)
            .read_to_end(&mut back)
            .unwrap();
        assert_eq!(back, plain);
    }

    proptest! {
        #[test]
        fn any_bytes_come_through(
            noise in prop::collection::vec((0usize..264, any::<u8>()), 0..9),
            cut in 0usize..264,
            by_ns: u64,
        ) {
            let mut bytes = case("blkparse-d.bin");
            for (at, byte) in noise {
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            bytes.truncate(cut);
            let _ = shift_of(&bytes);
            let mut back = Vec::new();
            Shifted::new(&bytes[..], by_ns).read_to_end(&mut back).unwrap();
            prop_assert_eq!(back.len(), bytes.len());
        }
    }
}
