// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the events of one CPU's file while it is or was recorded.

use std::fs::File;
use std::path::PathBuf;

use mostrace_bundle::Folder;
use mostrace_bundle::blk_io_trace::{Decoded, Event, Records, Then, decode};

use crate::error::{At, Error, Result};

const PIECE: usize = 1 << 20;

/// The events of a file, in its order.
pub(crate) struct EventReader {
    path: PathBuf,
    records: Records<File>,
    /// Plain records; those before `at` were returned.
    bytes: Vec<u8>,
    at: usize,
    /// The place of `bytes` among the plain records of the file.
    offset: usize,
    then: Then,
}

impl EventReader {
    /// Opens a file of the bundle.
    ///
    /// # Errors
    /// Returns an error if it cannot be opened.
    pub fn open(folder: &Folder, name: &str) -> Result<EventReader> {
        Ok(EventReader {
            path: folder.path().join(name),
            records: Records::new(folder.read(name)?),
            bytes: Vec::new(),
            at: 0,
            offset: 0,
            then: Then::More,
        })
    }

    /// Returns what `of` makes of the next event; None if the file ends, or continues with something else.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn next<T>(&mut self, of: impl FnOnce(&Event<'_>) -> T) -> Result<Option<T>> {
        loop {
            match decode(&self.bytes[self.at..]) {
                Decoded::Record(event, len) => {
                    self.at += len;
                    return Ok(Some(of(&event)));
                }
                Decoded::Short(_) if self.then == Then::More => self.read_on()?,
                _ => return Ok(None),
            }
        }
    }

    fn read_on(&mut self) -> Result<()> {
        self.offset += self.at;
        self.bytes.drain(..self.at);
        self.at = 0;
        self.then = self.records.read(PIECE, &mut self.bytes).at(&self.path)?;
        Ok(())
    }

    /// Returns an error if [`EventReader::next`] ended before the end of the file.
    ///
    /// # Errors
    /// Returns the place where no whole record is.
    pub fn ended(&self) -> Result<()> {
        let at = match self.then {
            Then::Foreign { offset, .. } | Then::Cut { offset, .. } => offset,
            Then::End if self.at == self.bytes.len() => return Ok(()),
            Then::End | Then::More => (self.offset + self.at) as u64,
        };
        let what = format!("no whole record at byte {at}");
        Err(Error::malformed(self.path.display(), what))
    }
}
