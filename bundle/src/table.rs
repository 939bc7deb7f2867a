// SPDX-License-Identifier: MIT OR Apache-2.0
//! An entry table: a 16-byte header, then records one behind the other.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::entry::{Entry, RawHead};
use crate::error::{At, Error};
use crate::length::as_u64;

/// Magic of the header; the number that follows it says the byte order.
pub const MAGIC: &[u8; 8] = b"MOSTENT\n";
/// Version of the entries' shapes.
pub const VERSION: u16 = 1;
/// Written in the byte order of the machine that captured.
pub const BYTE_ORDER: u16 = 0x1234;
/// Bytes of the header.
pub const HEADER_LEN: usize = 16;

const HEAD_LEN: usize = size_of::<RawHead>();

/// The header of a table that is written here: a big-endian machine's says so.
pub fn header() -> [u8; HEADER_LEN] {
    let mut h = [0; HEADER_LEN];
    h[..8].copy_from_slice(MAGIC);
    h[8..10].copy_from_slice(&BYTE_ORDER.to_ne_bytes());
    h[10..12].copy_from_slice(&VERSION.to_ne_bytes());
    h
}

/// Appends records to a table.
pub struct TableWriter {
    out: BufWriter<File>,
}

impl TableWriter {
    /// Creates the file and writes its header.
    ///
    /// # Errors
    /// The file cannot be created or written.
    pub fn create(path: &Path) -> io::Result<TableWriter> {
        let mut out = BufWriter::with_capacity(1 << 16, File::create(path)?);
        out.write_all(&header())?;
        Ok(TableWriter { out })
    }

    /// Appends one whole record as the kernel handed it over.
    ///
    /// # Errors
    /// The disk is full, or the like.
    pub fn push(&mut self, record: &[u8]) -> io::Result<()> {
        self.out.write_all(record)
    }

    /// Hands what is buffered to the kernel, so that a killed recorder loses little.
    ///
    /// # Errors
    /// The disk is full, or the like.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Reads a table from its start, one record at a time.
pub struct TableReader<R> {
    input: BufReader<R>,
    path: PathBuf,
    at: u64,
    /// The record being read; kept, so that reading one does not allocate.
    record: Vec<u8>,
    /// A record cut short at the end is reported here rather than as an error.
    allow_cut: bool,
    cut: Option<u64>,
    done: bool,
}

impl<R: Read> TableReader<R> {
    /// Checks the header. `path` is for messages; `allow_cut` accepts a table whose
    /// last record is not whole (the recorder was killed).
    ///
    /// # Errors
    /// Not a table, a newer version, or another byte order.
    pub fn new(input: R, path: &Path, allow_cut: bool) -> Result<TableReader<R>, Error> {
        let mut input = BufReader::with_capacity(1 << 16, input);
        let mut head = [0; HEADER_LEN];
        let got = read_up_to(&mut input, &mut head).at(path)?;
        let cut_header = allow_cut
            && got < HEADER_LEN
            && MAGIC.starts_with(head.get(..got.min(MAGIC.len())).unwrap_or_default());
        if !cut_header {
            check_header(&head, got, path)?;
        }
        Ok(TableReader {
            input,
            path: path.to_owned(),
            at: as_u64(HEADER_LEN),
            record: Vec::new(),
            allow_cut,
            cut: cut_header.then_some(0),
            done: cut_header,
        })
    }

    /// Byte offset at which the table was cut short, once the reader has come there.
    pub fn cut_at(&self) -> Option<u64> {
        self.cut
    }

    fn next_record(&mut self) -> Result<Option<Entry>, Error> {
        let mut head = [0; HEAD_LEN];
        let got = read_up_to(&mut self.input, &mut head).at(&self.path)?;
        if got == 0 {
            return Ok(None);
        }
        if got < HEAD_LEN {
            return self.cut_short();
        }
        let [_, _, low, high, ..] = head;
        let size = u16::from_le_bytes([low, high]);
        self.record.resize(usize::from(size), 0);
        let Some((to, rest)) = self.record.split_first_chunk_mut() else {
            return Err(self.corrupt(format!("size {size} is less than a head")));
        };
        *to = head;
        let got = read_up_to(&mut self.input, rest).at(&self.path)?;
        if got < rest.len() {
            return self.cut_short();
        }
        let entry = Entry::decode(&self.record).map_err(|what| self.corrupt(what))?;
        self.at = self.at.saturating_add(u64::from(size));
        Ok(Some(entry))
    }

    fn cut_short(&mut self) -> Result<Option<Entry>, Error> {
        if self.allow_cut {
            self.cut = Some(self.at);
            return Ok(None);
        }
        Err(self.corrupt("cut short in the middle of an entry".into()))
    }

    fn corrupt(&self, what: String) -> Error {
        Error::corrupt(&self.path, format!("entry at byte {}: {what}", self.at))
    }
}

impl<R: Read> Iterator for TableReader<R> {
    type Item = Result<Entry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.next_record().transpose();
        // After an error the next record's place is not known.
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}

fn check_header(head: &[u8; HEADER_LEN], got: usize, path: &Path) -> Result<(), Error> {
    if got < HEADER_LEN || &head[..8] != MAGIC {
        return Err(Error::corrupt(
            path,
            "not an entry table (bad magic at byte 0)",
        ));
    }
    let order = u16::from_le_bytes([head[8], head[9]]);
    if order == BYTE_ORDER.swap_bytes() {
        return Err(Error::unsupported(path, "entries of a big-endian machine"));
    }
    if order != BYTE_ORDER {
        return Err(Error::corrupt(
            path,
            format!("bad byte-order mark {order:#06x} at byte 8"),
        ));
    }
    let version = u16::from_le_bytes([head[10], head[11]]);
    if version != VERSION {
        return Err(Error::unsupported(
            path,
            format!("entry version {version}; this program reads version {VERSION}"),
        ));
    }
    Ok(())
}

/// Fills `buf` as far as the input goes.
fn read_up_to(input: &mut impl Read, buf: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0usize;
    while let Some(rest) = buf.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match input.read(rest) {
            Ok(0) => break,
            Ok(n) => filled = filled.saturating_add(n),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}
