// SPDX-License-Identifier: MIT OR Apache-2.0
//! An entry table: a 16-byte header, then records without gaps. Some are stored short ([`likes`]), if its version says so; a reader
//! returns them whole.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use zerocopy::FromBytes;

use crate::entry::{Entry, EntryRef, RawHead};
use crate::error::{At, Error};
use crate::length::as_u64;
use crate::likes::{Wholes, is_short};

/// Magic bytes of the header; the number behind them tells the byte order.
pub const MAGIC: &[u8; 8] = b"MOSTENT\n";
/// Version of the entries' shapes.
pub const VERSION: u16 = 1;
/// The version of a table with entries that are stored short.
pub const VERSION_SHORT: u16 = 2;
/// The byte-order mark, written in the byte order of the capturing machine.
pub const BYTE_ORDER: u16 = 0x1234;
/// Length of the header, bytes.
pub const HEADER_LEN: usize = 16;

const HEAD_LEN: usize = size_of::<RawHead>();
/// The most bytes that a writer buffers: more than the recorder makes of a batch of a ring before it flushes.
const BUFFERED: usize = 1 << 19;

/// Returns the header of a table in this machine's byte order.
pub fn header() -> [u8; HEADER_LEN] {
    header_of(VERSION)
}

/// Returns the header of a table of this version.
pub fn header_of(version: u16) -> [u8; HEADER_LEN] {
    let mut h = [0; HEADER_LEN];
    h[..8].copy_from_slice(MAGIC);
    h[8..10].copy_from_slice(&BYTE_ORDER.to_ne_bytes());
    h[10..12].copy_from_slice(&version.to_ne_bytes());
    h
}

/// Appends records to a table.
pub struct TableWriter {
    out: BufWriter<File>,
}

impl TableWriter {
    /// Creates a file and writes the header.
    pub fn create(path: &Path) -> io::Result<TableWriter> {
        TableWriter::new(File::create(path)?)
    }

    /// Writes the header into an empty file.
    pub fn new(file: File) -> io::Result<TableWriter> {
        TableWriter::of(file, VERSION)
    }

    /// Writes the header of a table of this version into an empty file.
    pub fn of(file: File, version: u16) -> io::Result<TableWriter> {
        let mut out = BufWriter::with_capacity(BUFFERED, file);
        out.write_all(&header_of(version))?;
        Ok(TableWriter { out })
    }

    /// Appends one whole record as the kernel's side produced it.
    #[inline]
    pub fn push(&mut self, record: &[u8]) -> io::Result<()> {
        self.out.write_all(record)
    }

    /// Hands buffered records to the kernel, so that a killed recorder loses little.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The number of bytes read at once: enough for the largest record, and few enough to stay in a core's cache.
const BUFFER: usize = 1 << 17;

/// Reads a table from its start, one record at a time; each is decoded in place in the buffer.
pub struct TableReader<R> {
    input: R,
    path: PathBuf,
    buffer: Vec<u8>,
    /// The range of the buffer that was read from the file but not yet returned.
    unread: Range<usize>,
    /// The offset in the file at which `unread` begins.
    at: u64,
    /// If true, a record that is cut short at the end is reported by `cut_at` instead of as an error.
    allow_cut: bool,
    cut: Option<u64>,
    done: bool,
    /// The input has ended behind a whole record, so that reading may continue if it grows.
    ended: bool,
    /// Short entries refer to these; None if the table can have no short entries.
    wholes: Option<Wholes>,
}

impl<R: Read> TableReader<R> {
    /// Checks the header and returns a reader. `path` is for messages; with `allow_cut`, a table whose last record is
    /// incomplete is accepted (the recorder was killed).
    ///
    /// # Errors
    /// Returns an error if the input is not a table, or is of a newer version or of another byte order.
    pub fn new(mut input: R, path: &Path, allow_cut: bool) -> Result<TableReader<R>, Error> {
        let mut head = [0; HEADER_LEN];
        let got = read_up_to(&mut input, &mut head).at(path)?;
        let cut_header = allow_cut
            && got < HEADER_LEN
            && MAGIC.starts_with(head.get(..got.min(MAGIC.len())).unwrap_or_default());
        let version = match cut_header {
            true => VERSION,
            false => version_in(&head, got, path)?,
        };
        Ok(TableReader {
            input,
            path: path.to_owned(),
            buffer: Vec::new(),
            unread: 0..0,
            at: as_u64(HEADER_LEN),
            allow_cut,
            cut: cut_header.then_some(0),
            done: cut_header,
            ended: false,
            wholes: (version == VERSION_SHORT).then(Wholes::default),
        })
    }

    /// Returns the byte offset at which the table was cut short, once the reader has reached it.
    pub fn cut_at(&self) -> Option<u64> {
        self.cut
    }

    /// Allows reading to continue after the end, if the input has grown. After an error it stays ended.
    pub fn go_on(&mut self) {
        self.done = self.done && !self.ended;
    }

    /// Returns the next entry if `wanted` accepts its head; otherwise the entry stays the next one. Also returns None
    /// at the end.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read or is damaged; nothing more can be read then.
    pub fn next_if(
        &mut self,
        wanted: impl FnOnce(&RawHead) -> bool,
    ) -> Result<Option<EntryRef<'_>>, Error> {
        if self.done {
            return Ok(None);
        }
        // After an error the position of the next record is not known.
        self.done = true;
        let size = match self.ready() {
            Some(size) => size,
            None => match self.whole_record()? {
                Some(size) => size,
                None => {
                    self.ended = self.cut.is_none();
                    return Ok(None);
                }
            },
        };
        let end = self.unread.start.saturating_add(size);
        let record = self.buffer.get(self.unread.start..end).unwrap_or_default();
        // An entry that is not wanted yet is asked for again and again, so its head alone is looked at.
        if let Ok((head, _)) = RawHead::ref_from_prefix(record)
            && !wanted(head)
        {
            self.done = false;
            return Ok(None);
        }
        let entry = match (&mut self.wholes, is_short(record)) {
            (Some(wholes), true) => wholes.completed(record).and_then(EntryRef::decode),
            (Some(wholes), false) => {
                wholes.keep(record);
                EntryRef::decode(record)
            }
            (None, _) => EntryRef::decode(record),
        };
        let entry = entry.map_err(|what| corrupt(&self.path, self.at, &what))?;
        self.done = false;
        self.unread.start = end;
        self.at = self.at.saturating_add(as_u64(size));
        Ok(Some(entry))
    }

    /// Returns the size of the next record in bytes, if all of it is in the buffer.
    #[inline]
    fn ready(&self) -> Option<usize> {
        let unread = self.buffer.get(self.unread.clone())?;
        let &[_, _, low, high, ..] = unread else {
            return None;
        };
        let size = usize::from(u16::from_le_bytes([low, high]));
        (HEAD_LEN..=unread.len()).contains(&size).then_some(size)
    }

    /// Reads until the next record is whole in the buffer and returns its size in bytes; None at the end.
    #[cold]
    fn whole_record(&mut self) -> Result<Option<usize>, Error> {
        if !self.has(HEAD_LEN)? {
            return self.cut_short();
        }
        let size = match self.buffer.get(self.unread.clone()) {
            Some(&[_, _, low, high, ..]) => usize::from(u16::from_le_bytes([low, high])),
            _ => 0,
        };
        if size < HEAD_LEN {
            let what = format!("size {size} is less than a head");
            return Err(corrupt(&self.path, self.at, &what));
        }
        if !self.has(size)? {
            return self.cut_short();
        }
        Ok(Some(size))
    }

    /// Reads more if needed. Returns true if the buffer then holds at least `bytes` unread bytes.
    fn has(&mut self, bytes: usize) -> Result<bool, Error> {
        if self.unread.len() < bytes {
            self.fill()?;
        }
        Ok(self.unread.len() >= bytes)
    }

    /// Moves the unread bytes to the front of the buffer and fills the rest from the file.
    fn fill(&mut self) -> Result<(), Error> {
        self.buffer.resize(BUFFER, 0);
        let kept = self.unread.len();
        self.buffer.copy_within(self.unread.clone(), 0);
        let room = self.buffer.get_mut(kept..).unwrap_or_default();
        let got = read_up_to(&mut self.input, room).at(&self.path)?;
        self.unread = 0..kept.saturating_add(got);
        Ok(())
    }

    /// Handles the end of the input: in order if nothing is unread, else a record that is cut short.
    fn cut_short(&mut self) -> Result<Option<usize>, Error> {
        if self.unread.is_empty() {
            return Ok(None);
        }
        if self.allow_cut {
            self.cut = Some(self.at);
            return Ok(None);
        }
        let what = "cut short in the middle of an entry";
        Err(corrupt(&self.path, self.at, what))
    }
}

fn corrupt(path: &Path, at: u64, what: &str) -> Error {
    Error::corrupt(path, format!("entry at byte {at}: {what}"))
}

impl<R: Read> Iterator for TableReader<R> {
    type Item = Result<Entry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_if(|_| true);
        next.map(|entry| entry.map(Entry::from)).transpose()
    }
}

/// Checks a header and returns its version.
fn version_in(head: &[u8; HEADER_LEN], got: usize, path: &Path) -> Result<u16, Error> {
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
    if ![VERSION, VERSION_SHORT].contains(&version) {
        return Err(Error::unsupported(
            path,
            format!("entry version {version}; this program reads up to {VERSION_SHORT}"),
        ));
    }
    Ok(version)
}

/// Reads until `buf` is full or the input ends. Returns the number of bytes read.
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
