// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of entries: who wrote a block, and to which file it belongs.

use std::collections::BTreeMap;
use std::mem::offset_of;

use mostrace_bundle::entry::{
    EntryRef, RawComm, RawDirtier, RawFreed, RawHead, RawProcess, TYPE_CGROUP, TYPE_COMM,
    TYPE_DIRTIER, TYPE_FILE, TYPE_FREED, TYPE_PROCESS,
};
use mostrace_bundle::{Folder, Packages, layout};
use zerocopy::{FromBytes, IntoBytes};

use super::completions::{Completions, RequestRecord};
use super::file_names::FileNames;
use super::held_back::HeldBack;
use super::isolated::Isolated;
use super::process_names::ProcessNames;
use super::recent::Recent;
use super::tables::{Counts, Sample, Spec, TableSet, entries, kind_of, time_of, u16_at};
use super::{NameFilter, Retention};
use crate::error::{Error, Result};

/// The room for the latest entries, bytes; half of it is enough for those of some 10,000 bios.
const RECENT: usize = 8 << 20;

const TABLES: [Spec; 6] = [
    (TYPE_PROCESS, layout::PROCESS),
    (TYPE_FILE, layout::FILE),
    (TYPE_DIRTIER, layout::DIRTIER),
    (TYPE_FREED, layout::FREED),
    (TYPE_CGROUP, layout::CGROUP),
    (TYPE_COMM, layout::COMM),
];

/// The tables of one recording.
pub(super) struct EntryTables {
    names: FileNames,
    /// The source of the entries, for messages.
    from: String,
    rows: Rows,
}

/// It takes entries in the tables' form.
struct Rows {
    tables: TableSet,
    processes: ProcessNames,
    isolated: Option<Isolated>,
    recent: Recent,
    held: HeldBack<Vec<u8>>,
}

impl EntryTables {
    /// Makes the files in `folder`. Messages about entries name `from`.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn create(
        folder: &Folder,
        names: NameFilter,
        from: &str,
        retention: Retention,
    ) -> Result<EntryTables> {
        Ok(EntryTables {
            names: FileNames::new(names),
            from: from.to_owned(),
            rows: Rows {
                tables: TableSet::create(folder, &TABLES)?,
                processes: ProcessNames::default(),
                isolated: None,
                recent: Recent::new(retention.room(RECENT)),
                held: HeldBack::default(),
            },
        })
    }

    /// Finds out of which of these apps isolated processes are.
    pub fn find_apps(&mut self, packages: &Packages) {
        self.rows.isolated = Some(Isolated::new(packages.clone()));
    }

    /// Returns these apps with the users of isolated processes; None if no such user is known.
    pub fn packages(&self) -> Option<Packages> {
        self.rows.isolated.as_ref()?.packages()
    }

    /// Takes one entry. Returns false if there is no table for its type.
    ///
    /// # Errors
    /// Returns an error if the entry is malformed, or if the bundle cannot be written.
    pub fn push(&mut self, entry: &[u8]) -> Result<bool> {
        let malformed = || Error::malformed(&self.from, "malformed entry");
        let kind = kind_of(entry).ok_or_else(malformed)?;
        let record = match kind {
            TYPE_PROCESS => fixed::<RawProcess>(entry),
            TYPE_FILE => self.names.trim(entry),
            TYPE_DIRTIER => fixed::<RawDirtier>(entry),
            TYPE_FREED => fixed::<RawFreed>(entry),
            TYPE_CGROUP => EntryRef::decode(entry).ok().map(|_| entry),
            TYPE_COMM => fixed::<RawComm>(entry),
            _ => return Ok(false),
        };
        let record = record.ok_or_else(malformed)?;
        if kind == TYPE_COMM && !self.rows.processes.learn(record) {
            return Ok(true);
        }
        self.rows.put(kind, record)?;
        Ok(true)
    }

    /// Returns a file's entry in the table's form, for a [`Sample`]; None if it is malformed.
    pub fn made_of(&mut self, file: &[u8]) -> Option<&[u8]> {
        self.names.trim(file)
    }

    /// Takes the entry of a bio that a sample is now.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    #[inline]
    pub fn push_like(&mut self, sample: &mut Sample) -> Result<()> {
        self.rows.put_like(sample)
    }

    /// Writes the names of an entry's process if they are needed and not yet in the table.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    #[inline]
    pub fn name_process(&mut self, entry: &[u8]) -> Result<()> {
        self.rows.name_process(entry)
    }

    /// From now on, holds back records of `at_ns` or later until [`EntryTables::begin_segment`].
    pub fn hold_from(&mut self, at_ns: u64) {
        self.rows.held.begin(at_ns);
    }

    /// Continues into `folder`. The new tables begin with the entries for which no completion was claimed and the names of processes,
    /// which are also in the tables before, and with what was held back. Returns where the tables' own records begin.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn begin_segment(
        &mut self,
        folder: &Folder,
        completions: &mut Completions,
    ) -> Result<BTreeMap<String, u64>> {
        let rows = &mut self.rows;
        let (_, recent) = rows.recent.take();
        let repeated = under_way(&recent, completions);
        for record in &repeated {
            rows.recent.push(time_of(record), record);
        }
        let repeated = repeated.into_iter().chain(rows.processes.told());
        let own_from = rows.tables.begin_segment(folder, repeated)?;
        for record in rows.held.take() {
            let kind = kind_of(&record).unwrap_or_default();
            rows.put(kind, &record)?;
        }
        Ok(own_from)
    }

    /// Passes buffered records to the kernel.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn flush(&mut self) -> Result<()> {
        self.rows.tables.flush()
    }

    /// Returns the number of entries in the segment so far.
    pub fn counts(&self) -> Counts {
        self.rows.tables.counts()
    }
}

impl Rows {
    /// Takes an entry of a bio like [`Rows::put`].
    #[inline]
    fn put_like(&mut self, sample: &mut Sample) -> Result<()> {
        let record = &sample.record;
        if self.held.holds(time_of(record)) {
            self.held.push(record.clone());
            return Ok(());
        }
        self.recent.push(time_of(record), record);
        self.tables.push_like(sample)?;
        self.name_process(&sample.record)
    }

    #[inline]
    fn put(&mut self, kind: u16, record: &[u8]) -> Result<()> {
        if self.held.holds(time_of(record)) {
            self.held.push(record.to_vec());
            return Ok(());
        }
        // Freed blocks, cgroups and names of processes belong to no request.
        if !matches!(kind, TYPE_FREED | TYPE_CGROUP | TYPE_COMM) {
            self.recent.push(time_of(record), record);
        }
        self.tables.push_kind(kind, record)?;
        self.name_process(record)
    }

    #[inline]
    fn name_process(&mut self, entry: &[u8]) -> Result<()> {
        if let Some(isolated) = &mut self.isolated {
            isolated.see(entry);
        }
        let needed = self.processes.needed(entry).into_iter().flatten();
        for name in needed {
            self.tables.push_kind(TYPE_COMM, name.as_bytes())?;
        }
        Ok(())
    }
}

/// Returns the entries for which no completion was claimed, in time order, as in the tables.
fn under_way<'a>(recent: &'a [u8], completions: &mut Completions) -> Vec<&'a [u8]> {
    let mut records: Vec<_> = entries(recent)
        .filter_map(|entry| Some((RawHead::ref_from_prefix(entry).ok()?.0, entry)))
        .collect();
    records.sort_by_key(|(head, _)| head.time_ns.get());
    records.reverse();
    records.retain(|(head, _)| {
        !completions.claim(&RequestRecord {
            // The lower bits hold the kinds of events.
            kind: u64::from(head.kind.get()) << 32,
            time_ns: head.time_ns.get(),
            sector: head.sector.get(),
            bytes: head.bytes.get(),
            of_device: false,
        })
    });
    records
        .into_iter()
        .rev()
        .map(|(_, record)| record)
        .collect()
}

/// Returns the bytes of an entry that is exactly a `T`. Its own size field must say so too, because readers rely on it.
fn fixed<T>(entry: &[u8]) -> Option<&[u8]> {
    let size = usize::from(u16_at(entry, offset_of!(RawHead, size))?);
    entry.get(..size).filter(|_| size == size_of::<T>())
}

#[cfg(test)]
mod tests {
    use mostrace_bundle::entry::RawFile;

    use super::*;

    #[test]
    fn entries_of_another_size_are_malformed() {
        let dir = tempfile::tempdir().unwrap();
        let names = NameFilter::default();
        let folder = Folder::open(dir.path()).unwrap();
        let mut tables = EntryTables::create(&folder, names, "here", Retention::of(false)).unwrap();
        let entry = |kind: u16, len: usize| {
            let mut entry = vec![0; len];
            entry[..2].copy_from_slice(&kind.to_ne_bytes());
            entry[2..4].copy_from_slice(&(len as u16).to_ne_bytes());
            entry
        };
        for (kind, len) in [
            (TYPE_PROCESS, 88),
            (TYPE_FILE, 72),
            (TYPE_DIRTIER, 72),
            (TYPE_FREED, 56),
        ] {
            assert!(tables.push(&entry(kind, len)).unwrap());
            let short = tables.push(&entry(kind, len - 8)).unwrap_err();
            assert_eq!(short.to_string(), "here: malformed entry");
        }
        let mut long_name = entry(TYPE_FILE, 72);
        long_name[offset_of!(RawFile, name_len)] = 1;
        for bad in [
            &entry(TYPE_PROCESS, 96),
            &entry(TYPE_DIRTIER, 80),
            &long_name,
        ] {
            assert!(tables.push(bad).is_err(), "{bad:?}");
        }
        assert!(!tables.push(&entry(99, 40)).unwrap());
        let kept: Vec<u64> = tables.counts().iter().map(|(_, kept)| *kept).collect();
        assert_eq!(kept, [1, 1, 1, 1, 0, 0]);
    }
}
