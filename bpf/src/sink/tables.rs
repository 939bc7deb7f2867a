// SPDX-License-Identifier: MIT OR Apache-2.0
//! A set of the bundle's tables, one for each type of entry.

use std::collections::BTreeMap;
use std::mem::offset_of;
use std::path::PathBuf;

use mostrace_bundle::entry::{
    RawDirtied, RawHandle, RawHead, TYPE_DIRTIED, TYPE_FILE, TYPE_HANDLE, TYPE_PROCESS,
};
use mostrace_bundle::likes::Short;
use mostrace_bundle::table::{HEADER_LEN, TableWriter, VERSION, VERSION_SHORT};
use mostrace_bundle::{Folder, layout};
use zerocopy::FromBytes;

use crate::error::{At, Result};

/// The number of records in tables, by the manifest's names.
pub(crate) type Counts = Vec<(String, u64)>;

/// The specification of a table: the type of its entries, and the name of its file.
pub(super) type Spec = (u16, &'static str);

struct Table {
    kind: u16,
    name: &'static str,
    path: PathBuf,
    out: TableWriter,
    count: u64,
    /// The number of entries that are in it whole.
    wholes: u64,
    /// The length in bytes of the records that were repeated at its beginning.
    repeated: u64,
}

/// The place of a whole entry: its number in its table, and the number of the segment.
#[derive(Clone, Copy)]
struct Place {
    segment: u64,
    nth: u64,
}

/// An entry in the table's form whose like keep coming, and where the table has one of them whole.
pub(crate) struct Sample {
    pub kind: u16,
    pub record: Vec<u8>,
    place: Option<Place>,
}

impl Sample {
    /// Takes an entry in the table's form.
    pub fn new(kind: u16, record: &[u8]) -> Sample {
        Sample {
            kind,
            record: record.to_vec(),
            place: None,
        }
    }
}

impl Table {
    fn create(folder: &Folder, (kind, name): Spec) -> Result<Table> {
        let path = folder.path().join(name);
        let version = match kind {
            TYPE_PROCESS | TYPE_FILE => VERSION_SHORT,
            _ => VERSION,
        };
        let out = TableWriter::of(folder.replace(name)?, version).at(&path)?;
        Ok(Table {
            kind,
            name,
            path,
            out,
            count: 0,
            wholes: 0,
            repeated: 0,
        })
    }

    #[inline]
    fn put_whole(&mut self, record: &[u8]) -> Result<()> {
        self.wholes += 1;
        self.out.push(record).at(&self.path)
    }

    /// Appends the entry of a sample, short if one that is like it is near.
    fn put_like(&mut self, sample: &mut Sample, segment: u64) -> Result<()> {
        let near = sample.place.filter(|place| place.segment == segment);
        let back = near.and_then(|place| self.wholes.checked_sub(place.nth)?.checked_sub(1));
        match back.and_then(|back| Short::of(&sample.record, back)) {
            Some(short) => self.out.push(short.record()).at(&self.path),
            None => {
                let nth = self.wholes;
                sample.place = Some(Place { segment, nth });
                self.put_whole(&sample.record)
            }
        }
    }
}

/// The tables, in the order of their specifications.
pub(super) struct TableSet {
    specs: &'static [Spec],
    tables: Vec<Table>,
    /// The number of segments before.
    segment: u64,
}

impl TableSet {
    /// Makes the files in `folder`, replacing those of a source that was tried before.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn create(folder: &Folder, specs: &'static [Spec]) -> Result<TableSet> {
        let tables = specs.iter().map(|spec| Table::create(folder, *spec));
        Ok(TableSet {
            specs,
            tables: tables.collect::<Result<_>>()?,
            segment: 0,
        })
    }

    /// Appends a record to the table of its type, if there is one.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn push(&mut self, record: &[u8]) -> Result<()> {
        kind_of(record).map_or(Ok(()), |kind| self.push_kind(kind, record))
    }

    /// Appends a record of this type to its table, if there is one.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    #[inline]
    pub fn push_kind(&mut self, kind: u16, record: &[u8]) -> Result<()> {
        let Some(table) = self.of(kind) else {
            return Ok(());
        };
        table.count += 1;
        table.put_whole(record)
    }

    /// Appends the entry of a sample to its table, if there is one.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    #[inline]
    pub fn push_like(&mut self, sample: &mut Sample) -> Result<()> {
        let segment = self.segment;
        let Some(table) = self.of(sample.kind) else {
            return Ok(());
        };
        table.count += 1;
        table.put_like(sample, segment)
    }

    #[inline]
    fn of(&mut self, kind: u16) -> Option<&mut Table> {
        self.tables.iter_mut().find(|table| table.kind == kind)
    }

    /// Continues into `folder`, beginning with these records, which the segment before also has. Returns where the tables' own
    /// records begin.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn begin_segment<'a>(
        &mut self,
        folder: &Folder,
        repeated: impl Iterator<Item = &'a [u8]>,
    ) -> Result<BTreeMap<String, u64>> {
        self.flush()?;
        *self = TableSet {
            segment: self.segment + 1,
            ..TableSet::create(folder, self.specs)?
        };
        for record in repeated {
            if let Some(table) = kind_of(record).and_then(|kind| self.of(kind)) {
                table.repeated += record.len() as u64;
                table.put_whole(record)?;
            }
        }
        let own_from = self.tables.iter().map(|table| {
            let from = HEADER_LEN as u64 + table.repeated;
            (table.name.to_owned(), from)
        });
        Ok(own_from.collect())
    }

    /// Passes buffered records to the kernel.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn flush(&mut self) -> Result<()> {
        let mut tables = self.tables.iter_mut();
        tables.try_for_each(|table| table.out.flush().at(&table.path))
    }

    /// Returns the number of records in the segment so far, without repeated ones.
    pub fn counts(&self) -> Counts {
        let tables = self.tables.iter();
        tables
            .map(|table| (layout::count_of(table.name), table.count))
            .collect()
    }
}

/// Returns the type of an entry, which is in its first two bytes.
#[inline]
pub(crate) fn kind_of(entry: &[u8]) -> Option<u16> {
    u16_at(entry, offset_of!(RawHead, kind))
}

/// Returns the time of an entry, ns; 0 if it has none.
pub(super) fn time_of(entry: &[u8]) -> u64 {
    RawHead::ref_from_prefix(entry).map_or(0, |(head, _)| head.time_ns.get())
}

/// Returns the first entry, by the size that it states, and the bytes behind it; None if it states no valid size.
#[inline]
pub(crate) fn split_entry(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, _) = RawHead::ref_from_prefix(bytes).ok()?;
    let size = usize::from(head.size.get());
    bytes.split_at_checked(size).filter(|_| size > 0)
}

/// Returns consecutive entries one by one.
pub(super) fn entries(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (entry, rest) = split_entry(bytes)?;
        bytes = rest;
        Some(entry)
    })
}

/// Returns the 16-bit number at `at`.
#[inline]
pub(super) fn u16_at(entry: &[u8], at: usize) -> Option<u16> {
    let bytes = entry.get(at..at + 2)?.try_into().ok()?;
    Some(u16::from_ne_bytes(bytes))
}

/// Returns the transaction in the entry of a handle or a dirtied block.
pub(super) fn tid_of(entry: &[u8]) -> Option<u32> {
    let tid = match kind_of(entry)? {
        TYPE_HANDLE => RawHandle::ref_from_prefix(entry).ok()?.0.tid,
        TYPE_DIRTIED => RawDirtied::ref_from_prefix(entry).ok()?.0.tid,
        _ => return None,
    };
    Some(tid.get())
}
