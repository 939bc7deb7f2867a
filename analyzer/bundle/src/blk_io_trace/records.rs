// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes of records, from a file of either form.

use super::compact::{Expanded, Expander, HEADER};
use std::io::{self, Read};

/// The most bytes by which records are expanded: from 4 to 56, or by less.
const EXPANDED: usize = 14;

/// Plain bytes that are read at once if all are wanted.
const ALL: usize = 1 << 20;

/// A file of records, plain or [compact](super::compact), that is read in pieces.
pub struct Records<R> {
    source: R,
    form: Form,
}

enum Form {
    /// Nothing was read yet.
    Unknown,
    Plain,
    Compact(Box<Compact>),
}

/// The state of a file in the compact form.
#[derive(Default)]
struct Compact {
    expander: Expander,
    /// These bytes were read and are not yet expanded.
    bytes: Vec<u8>,
    /// The place of these bytes in the file.
    offset: u64,
}

/// This says what follows a piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// More of it.
    More,
    /// Its end.
    End,
    /// Bytes at this offset that are no record in the compact form, and begin with this little-endian number.
    Foreign {
        /// The offset in the file, bytes.
        offset: u64,
        /// The first four bytes.
        magic: u32,
    },
    /// The end of the file, within a record in the compact form.
    Cut {
        /// The offset of the record in the file, bytes.
        offset: u64,
        /// The record's least length, bytes.
        needed: usize,
        /// So many bytes of it are there.
        left: usize,
    },
}

impl<R: Read> Records<R> {
    /// Reads a file from its beginning, or from a place where a record of it begins and refers to nothing before.
    pub fn new(source: R) -> Records<R> {
        Records {
            source,
            form: Form::Unknown,
        }
    }

    /// Appends some `piece` bytes of plain records to `to`. Those of a plain file may end anywhere, and are not checked; those of a
    /// compact file are whole.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn read(&mut self, piece: usize, to: &mut Vec<u8>) -> io::Result<Then> {
        match &mut self.form {
            Form::Unknown => self.recognise(piece, to),
            Form::Plain => Ok(match read(&mut self.source, piece, to)? {
                0 => Then::End,
                _ => Then::More,
            }),
            Form::Compact(compact) => compact.read(&mut self.source, piece, to),
        }
    }

    /// Reads a whole file: its plain records, and what follows them.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn read_all(mut self) -> io::Result<(Vec<u8>, Then)> {
        let mut all = Vec::new();
        loop {
            let then = self.read(ALL, &mut all)?;
            if then != Then::More {
                return Ok((all, then));
            }
        }
    }

    fn recognise(&mut self, piece: usize, to: &mut Vec<u8>) -> io::Result<Then> {
        let mut bytes = Vec::new();
        read(&mut self.source, HEADER.len(), &mut bytes)?;
        if bytes != HEADER {
            to.extend_from_slice(&bytes);
            self.form = Form::Plain;
        } else {
            self.form = Form::Compact(Box::new(Compact {
                bytes,
                ..Compact::default()
            }));
        }
        self.read(piece, to)
    }

    /// Returns the bytes of a compact file of which the records were returned; None for a plain file.
    pub fn expanded(&self) -> Option<u64> {
        match &self.form {
            Form::Compact(compact) => Some(compact.offset),
            _ => None,
        }
    }

    /// Returns how many bytes of the file were not returned, and reads to its end.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn left(&mut self) -> io::Result<u64> {
        let unread = io::copy(&mut self.source, &mut io::sink())?;
        let read = match &self.form {
            Form::Compact(compact) => compact.bytes.len(),
            _ => 0,
        };
        Ok(unread.saturating_add(u64::try_from(read).unwrap_or(0)))
    }
}

impl Compact {
    fn read(&mut self, source: &mut impl Read, piece: usize, to: &mut Vec<u8>) -> io::Result<Then> {
        let more = read(source, piece / EXPANDED, &mut self.bytes)? > 0;
        let mut at: usize = 0;
        let then = loop {
            let rest = self.bytes.get(at..).unwrap_or_default();
            let offset = self.offset.saturating_add(u64::try_from(at).unwrap_or(0));
            match self.expander.expand(rest, to) {
                Expanded::Taken(len) => at = at.saturating_add(len),
                Expanded::Short(_) if more => break Then::More,
                Expanded::Short(_) if rest.is_empty() => break Then::End,
                Expanded::Short(needed) => {
                    let left = rest.len();
                    break Then::Cut {
                        offset,
                        needed,
                        left,
                    };
                }
                Expanded::Foreign(magic) => break Then::Foreign { offset, magic },
            }
        };
        self.bytes.drain(..at.min(self.bytes.len()));
        self.offset = self.offset.saturating_add(u64::try_from(at).unwrap_or(0));
        Ok(then)
    }
}

/// Appends up to `most` bytes, fewer only at the end.
fn read(source: &mut impl Read, most: usize, to: &mut Vec<u8>) -> io::Result<usize> {
    to.reserve(most);
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    source.take(most).read_to_end(to)
}
