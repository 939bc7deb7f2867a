// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entries that are like an earlier one of their table, of which only what differs is stored.
//!
//! Direct IO of one task on one file makes entries that differ in time, place and length alone. Such an entry is stored as its common
//! head and, if it is a file's, its offset; the head's `flags` tell how many whole entries lie between it and the one that it is like.

use zerocopy::{FromBytes, IntoBytes, LE, U64};

use crate::entry::{RawFile, RawHead, RawProcess, TYPE_FILE, TYPE_LIKE, TYPE_PROCESS};

/// The number of whole entries that can be referred to: the latest ones.
pub const REACH: u64 = 64;

const HEAD: usize = size_of::<RawHead>();
const WITH_OFFSET: usize = HEAD + size_of::<u64>();

/// Returns true if a record is stored short.
#[inline]
pub(crate) fn is_short(record: &[u8]) -> bool {
    record.first_chunk() == Some(&TYPE_LIKE.to_le_bytes())
}

/// The short form of an entry.
pub struct Short {
    bytes: [u8; WITH_OFFSET],
    len: usize,
}

impl Short {
    /// Makes the short form of an entry that differs from the whole one `back` whole entries before the latest only in what is told.
    /// None for a kind that has no short form, or if that one lies too far back.
    #[inline]
    pub fn of(entry: &[u8], back: u64) -> Option<Short> {
        let (head, _) = RawHead::ref_from_prefix(entry).ok()?;
        let back = u8::try_from(back).ok().filter(|_| back < REACH)?;
        let mut bytes = [0; WITH_OFFSET];
        let (offset, len) = match head.kind.get() {
            TYPE_PROCESS => (None, HEAD),
            TYPE_FILE => (
                Some(RawFile::ref_from_prefix(entry).ok()?.0.offset),
                WITH_OFFSET,
            ),
            _ => return None,
        };
        let (short, rest) = RawHead::mut_from_prefix(&mut bytes).ok()?;
        *short = *head;
        short.kind = TYPE_LIKE.into();
        short.size = u16::try_from(len).ok()?.into();
        short.flags.0 = back;
        if let Some(offset) = offset {
            offset.write_to(rest).ok()?;
        }
        Some(Short { bytes, len })
    }

    /// Returns the record to store.
    #[inline]
    pub fn record(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// The latest whole entries of a table that is being read.
#[derive(Default)]
pub(crate) struct Wholes {
    /// A ring, once it is full.
    latest: Vec<Vec<u8>>,
    count: u64,
}

impl Wholes {
    /// Takes a whole entry.
    #[inline]
    pub fn keep(&mut self, record: &[u8]) {
        match self
            .place(self.count)
            .and_then(|at| self.latest.get_mut(at))
        {
            Some(place) => {
                place.clear();
                place.extend_from_slice(record);
            }
            None => self.latest.push(record.to_vec()),
        }
        self.count = self.count.saturating_add(1);
    }

    fn place(&self, nth: u64) -> Option<usize> {
        usize::try_from(nth.checked_rem(REACH)?).ok()
    }

    /// Returns the entry that is stored short.
    ///
    /// # Errors
    /// Returns what is wrong with the record.
    pub fn completed(&mut self, record: &[u8]) -> Result<&[u8], String> {
        let (short, rest) = RawHead::ref_from_prefix(record).map_err(|_| "shorter than a head")?;
        let back = u64::from(short.flags.0);
        let like = self.like(back).ok_or("it is like none")?;
        let (head, _) = RawHead::mut_from_prefix(like).map_err(|_| "it is like none")?;
        head.time_ns = short.time_ns;
        head.sector = short.sector;
        head.bytes = short.bytes;
        head.cpu = short.cpu;
        head.stage = short.stage;
        match head.kind.get() {
            TYPE_PROCESS if rest.is_empty() => {
                let (process, _) =
                    RawProcess::mut_from_prefix(like).map_err(|_| "it is like a cut one")?;
                process.submit_ns = short.time_ns;
            }
            TYPE_FILE => {
                let (file, _) =
                    RawFile::mut_from_prefix(like).map_err(|_| "it is like a cut one")?;
                file.offset = U64::<LE>::read_from_bytes(rest).map_err(|_| "it has no offset")?;
            }
            kind => return Err(format!("it is like an entry of type {kind}")),
        }
        Ok(like)
    }

    fn like(&mut self, back: u64) -> Option<&mut Vec<u8>> {
        let nth = self.count.checked_sub(1)?.checked_sub(back)?;
        let at = self.place(nth).filter(|_| back < REACH)?;
        self.latest.get_mut(at)
    }
}
