// SPDX-License-Identifier: MIT OR Apache-2.0
//! A set of the bundle's tables: one for each type of entry.

use std::collections::BTreeMap;
use std::mem::offset_of;
use std::path::PathBuf;

use mostrace_bundle::entry::RawHead;
use mostrace_bundle::table::{HEADER_LEN, TableWriter};
use mostrace_bundle::{Folder, layout};
use zerocopy::FromBytes;

use crate::error::{At, Result};

/// The records of tables, by the manifest's names.
pub(crate) type Counts = Vec<(String, u64)>;

/// The specification of a table: the type of its entries, and the name of its file.
pub(super) type Spec = (u16, &'static str);

struct Table {
    kind: u16,
    name: &'static str,
    path: PathBuf,
    out: TableWriter,
    count: u64,
    /// The bytes of records that were repeated at its beginning.
    repeated: u64,
}

impl Table {
    fn create(folder: &Folder, (kind, name): Spec) -> Result<Table> {
        let path = folder.path().join(name);
        let out = TableWriter::new(folder.replace(name)?).at(&path)?;
        Ok(Table {
            kind,
            name,
            path,
            out,
            count: 0,
            repeated: 0,
        })
    }
}

/// The tables, in the order of their specifications.
pub(super) struct TableSet {
    specs: &'static [Spec],
    tables: Vec<Table>,
}

impl TableSet {
    /// Makes the files in `folder`, in place of those of a source that was tried before.
    ///
    /// # Errors
    /// The bundle cannot be written.
    pub fn create(folder: &Folder, specs: &'static [Spec]) -> Result<TableSet> {
        let tables = specs.iter().map(|spec| Table::create(folder, *spec));
        Ok(TableSet {
            specs,
            tables: tables.collect::<Result<_>>()?,
        })
    }

    /// Appends a record to the table of its type, if there is one.
    ///
    /// # Errors
    /// The bundle cannot be written.
    pub fn push(&mut self, record: &[u8]) -> Result<()> {
        let Some(table) = self.of(record) else {
            return Ok(());
        };
        table.count += 1;
        table.out.push(record).at(&table.path)
    }

    fn of(&mut self, record: &[u8]) -> Option<&mut Table> {
        let kind = kind_of(record)?;
        self.tables.iter_mut().find(|table| table.kind == kind)
    }

    /// Continues into `folder` with records that the segment before has too. Returns where the tables' own records begin.
    ///
    /// # Errors
    /// The bundle cannot be written.
    pub fn begin_segment<'a>(
        &mut self,
        folder: &Folder,
        repeated: impl Iterator<Item = &'a [u8]>,
    ) -> Result<BTreeMap<String, u64>> {
        self.flush()?;
        *self = TableSet::create(folder, self.specs)?;
        for record in repeated {
            if let Some(table) = self.of(record) {
                table.repeated += record.len() as u64;
                table.out.push(record).at(&table.path)?;
            }
        }
        let own_from = self.tables.iter().map(|table| {
            let from = HEADER_LEN as u64 + table.repeated;
            (table.name.to_owned(), from)
        });
        Ok(own_from.collect())
    }

    /// Hands what is buffered to the kernel.
    ///
    /// # Errors
    /// The bundle cannot be written.
    pub fn flush(&mut self) -> Result<()> {
        let mut tables = self.tables.iter_mut();
        tables.try_for_each(|table| table.out.flush().at(&table.path))
    }

    /// The records of the segment so far, without those that were repeated.
    pub fn counts(&self) -> Counts {
        let tables = self.tables.iter();
        tables
            .map(|table| (layout::count_of(table.name), table.count))
            .collect()
    }
}

/// The type of an entry, which its first two bytes tell.
pub(super) fn kind_of(entry: &[u8]) -> Option<u16> {
    u16_at(entry, offset_of!(RawHead, kind))
}

/// The first entry, by the size that it states, and what follows; None if it states none.
pub(crate) fn split_entry(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, _) = RawHead::ref_from_prefix(bytes).ok()?;
    let size = usize::from(head.size.get());
    bytes.split_at_checked(size).filter(|_| size > 0)
}

/// The entries that stand one behind the other.
pub(super) fn entries(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (entry, rest) = split_entry(bytes)?;
        bytes = rest;
        Some(entry)
    })
}

/// The number of two bytes that stands at `at`.
pub(super) fn u16_at(entry: &[u8], at: usize) -> Option<u16> {
    let bytes = entry.get(at..at + 2)?.try_into().ok()?;
    Some(u16::from_ne_bytes(bytes))
}
