// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of causes: a journal's handles, the blocks that each dirtied, the system calls behind them, and the processes of the
//! command's tree.

use std::collections::BTreeMap;

use mostrace_bundle::entry::stack::TYPE_STACK;
use mostrace_bundle::entry::{
    EntryRef, RawCall, RawDirtied, RawF2fs, RawServed, TYPE_CALL, TYPE_DIRTIED, TYPE_F2FS,
    TYPE_FILE, TYPE_FORK, TYPE_HANDLE, TYPE_SERVED,
};
use mostrace_bundle::{Folder, layout};

use super::file_names::FileNames;
use super::functions::{Functions, HANDLE};
use super::latest_causes::LatestCauses;
use super::process_tree::{FORK, ProcessTree};
use super::stacks::Stacks;
use super::tables::{Counts, Spec, TableSet, entries, kind_of, tid_of};
use super::{NameFilter, Retention};
use crate::error::{Error, Result};

const DIRTIED: usize = size_of::<RawDirtied>();
const CALL: usize = size_of::<RawCall>();
const F2FS: usize = size_of::<RawF2fs>();
const SERVED: usize = size_of::<RawServed>();

const TABLES: [Spec; 8] = [
    (TYPE_HANDLE, layout::HANDLE),
    (TYPE_DIRTIED, layout::DIRTIED),
    (TYPE_CALL, layout::CALL),
    (TYPE_FILE, layout::CALLED),
    (TYPE_F2FS, layout::F2FS),
    (TYPE_FORK, layout::FORK),
    (TYPE_SERVED, layout::SERVED),
    (TYPE_STACK, layout::STACK),
];

/// The tables of a recording without stacks.
const WITHOUT_STACKS: usize = TABLES.len() - 1;

/// The tables of one recording.
pub(super) struct CauseTables {
    tables: TableSet,
    names: FileNames,
    functions: Functions,
    tree: ProcessTree,
    /// The newest transaction that was seen.
    tid: u32,
    latest: LatestCauses,
    stacks: Stacks,
}

impl CauseTables {
    /// Makes the files in `folder`; that of stacks only if there are to be any.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn create(
        folder: &Folder,
        names: NameFilter,
        retention: Retention,
        has_stacks: bool,
    ) -> Result<CauseTables> {
        let specs = match has_stacks {
            true => &TABLES[..],
            false => &TABLES[..WITHOUT_STACKS],
        };
        Ok(CauseTables {
            tables: TableSet::create(folder, specs)?,
            names: FileNames::new(names),
            functions: Functions::default(),
            tree: ProcessTree::default(),
            tid: 0,
            latest: LatestCauses::new(retention),
            stacks: Stacks::new(retention),
        })
    }

    /// Takes one entry.
    ///
    /// # Errors
    /// Returns an error if the entry is malformed, or if the bundle cannot be written.
    pub fn push(&mut self, entry: &[u8]) -> Result<()> {
        let malformed = || Error::malformed("entries of causes", "malformed entry");
        match (kind_of(entry), entry.len()) {
            (Some(TYPE_HANDLE), HANDLE) => {
                let entry = self.functions.number(entry);
                self.tid = tid_of(&entry).unwrap_or(self.tid);
                self.latest.entry(&entry);
                self.push_stack(&entry)?;
                self.tables.push(&entry)
            }
            (Some(TYPE_DIRTIED), DIRTIED) => {
                self.latest.entry(entry);
                self.tables.push(entry)
            }
            (Some(TYPE_CALL), CALL) => {
                self.push_stack(entry)?;
                self.tables.push(entry)
            }
            (Some(TYPE_STACK), _) => {
                EntryRef::decode(entry).map_err(|_| malformed())?;
                self.stacks.learn(entry);
                Ok(())
            }
            (Some(TYPE_FILE), _) => {
                let record = self.names.trim(entry).ok_or_else(malformed)?;
                self.latest.name(record);
                self.tables.push(record)
            }
            (Some(TYPE_F2FS), F2FS) => {
                self.latest.step(entry);
                self.tables.push(entry)
            }
            (Some(TYPE_FORK), FORK) => match self.tree.push(entry) {
                Some(record) => self.tables.push(&record),
                None => Ok(()),
            },
            (Some(TYPE_SERVED), SERVED) => self.tables.push(entry),
            _ => Err(malformed()),
        }
    }

    /// Writes the stack that an entry refers to, ahead of the entry, unless the table has it.
    fn push_stack(&mut self, entry: &[u8]) -> Result<()> {
        let news = self.stacks.news(entry);
        news.map_or(Ok(()), |stack| self.tables.push(&stack))
    }

    /// Returns true if the stack of this number need not be told again.
    pub fn knows_stack(&self, id: u64) -> bool {
        self.stacks.knows(id)
    }

    /// Reports that the command has been started as this process.
    pub fn command_started(&mut self, pid: u32) {
        self.tree.command_started(pid);
    }

    /// Continues into `folder`. The new tables begin with the entries of the running and of the committing transaction and their stacks,
    /// the names, the latest steps of f2fs, and the command's processes, all of which are also in the tables before. Returns where the
    /// tables' own records begin.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn begin_segment(&mut self, folder: &Folder) -> Result<BTreeMap<String, u64>> {
        let recent = self.latest.take_open(self.tid);
        self.stacks.begin_segment();
        let stacks: Vec<Vec<u8>> = entries(&recent)
            .filter_map(|entry| self.stacks.news(entry))
            .collect();
        let tree = self.tree.known().map(<[u8; FORK]>::as_slice);
        let repeated = entries(&recent).chain(self.latest.names_and_steps());
        let stacks = stacks.iter().map(Vec::as_slice);
        self.tables
            .begin_segment(folder, stacks.chain(repeated).chain(tree))
    }

    /// Passes buffered records to the kernel.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn flush(&mut self) -> Result<()> {
        self.tables.flush()
    }

    /// Returns the number of entries in the segment so far.
    pub fn counts(&self) -> Counts {
        self.tables.counts()
    }

    /// Returns the addresses of the functions that began handles, in the order of their numbers in the table.
    pub fn functions(&self) -> &[u64] {
        self.functions.addresses()
    }
}

/// Returns true for an entry of a type that only causes have. A file's entry may belong to either kind of tables.
pub(crate) fn is_cause(entry: &[u8]) -> bool {
    kind_of(entry)
        .is_some_and(|kind| [TYPE_HANDLE, TYPE_DIRTIED, TYPE_CALL, TYPE_F2FS].contains(&kind))
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use mostrace_bundle::Entry;
    use mostrace_bundle::entry::stack::RawStack;
    use mostrace_bundle::entry::{NONE, RawFile, RawHandle, RawHead};
    use mostrace_bundle::table::TableReader;

    use super::*;

    fn all() -> NameFilter {
        NameFilter::default()
    }

    fn entry(kind: u16, len: usize) -> Vec<u8> {
        let mut entry = vec![0; len];
        entry[..2].copy_from_slice(&kind.to_ne_bytes());
        entry[2..4].copy_from_slice(&(len as u16).to_ne_bytes());
        entry
    }

    #[test]
    fn addresses_become_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let mut tables = CauseTables::create(&folder, all(), Retention::of(false), false).unwrap();
        let addresses = [0xffff_8000_0000_1000, 0xffff_8000_0000_2000, NONE, 0];
        for address in addresses.iter().chain(&addresses) {
            let mut handle = entry(TYPE_HANDLE, size_of::<RawHandle>());
            let at = offset_of!(RawHandle, function);
            handle[at..at + 8].copy_from_slice(&u64::to_ne_bytes(*address));
            tables.push(&handle).unwrap();
        }
        tables.flush().unwrap();
        assert_eq!(tables.functions(), &addresses[..2]);
        let path = dir.path().join(layout::HANDLE);
        let table = std::fs::File::open(&path).unwrap();
        let numbers: Vec<_> = TableReader::new(table, &path, false)
            .unwrap()
            .map(|entry| match entry {
                Ok(Entry::Handle(handle)) => handle.function.get(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(numbers, [0, 1, NONE, NONE, 0, 1, NONE, NONE]);
    }

    /// A file's journal that is made anew for each transaction has the same name each time.
    #[test]
    fn the_next_segment_has_the_names_that_are_known() {
        let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let [first, second] = dirs.each_ref().map(|dir| Folder::open(dir.path()).unwrap());
        let mut tables = CauseTables::create(&first, all(), Retention::of(true), false).unwrap();
        for (ino, name) in [(7_u64, b"a.db"), (8, b"b.db"), (9, b"b.db")] {
            let mut file = entry(TYPE_FILE, 80);
            file[offset_of!(RawFile, ino)..][..8].copy_from_slice(&ino.to_ne_bytes());
            file[offset_of!(RawFile, name_len)..][..2].copy_from_slice(&4_u16.to_ne_bytes());
            file[size_of::<RawFile>()..][..4].copy_from_slice(name);
            tables.push(&file).unwrap();
        }
        assert!(tables.counts().contains(&("called_entries".to_owned(), 3)));
        tables.begin_segment(&second).unwrap();
        tables.flush().unwrap();
        let path = dirs[1].path().join(layout::CALLED);
        let table = TableReader::new(std::fs::File::open(&path).unwrap(), &path, false).unwrap();
        let names: Vec<_> = table
            .map(|entry| match entry {
                Ok(Entry::File(file)) => (file.raw.ino.get(), file.name),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(names, [(7, b"a.db".to_vec()), (9, b"b.db".to_vec())]);
    }

    #[test]
    fn entries_of_another_size_or_type_are_malformed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let mut tables = CauseTables::create(&folder, all(), Retention::of(false), false).unwrap();
        tables.command_started(0);
        for (kind, len) in [
            (TYPE_HANDLE, 120),
            (TYPE_DIRTIED, 48),
            (TYPE_CALL, 120),
            (TYPE_F2FS, 72),
            (TYPE_FORK, 40),
            (TYPE_SERVED, 88),
        ] {
            tables.push(&entry(kind, len)).unwrap();
            assert!(tables.push(&entry(kind, len + 8)).is_err(), "{kind}");
        }
        tables.push(&entry(TYPE_FILE, 72)).unwrap();
        assert!(tables.push(&entry(TYPE_FILE, 64)).is_err());
        assert!(tables.push(&entry(1, 88)).is_err() && tables.push(&[]).is_err());
        let kept: Vec<u64> = tables.counts().iter().map(|(_, kept)| *kept).collect();
        assert_eq!(kept, [1; WITHOUT_STACKS]);
    }

    /// A stack is in the table of each segment that has an entry with its number, and in no other.
    #[test]
    fn each_segment_has_the_stacks_that_it_refers_to() {
        let dirs = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let folders = dirs.each_ref().map(|dir| Folder::open(dir.path()).unwrap());
        let mut tables =
            CauseTables::create(&folders[0], all(), Retention::of(true), true).unwrap();
        let with = |kind: u16, len: usize, at: usize, id: u64| {
            let mut entry = entry(kind, len);
            entry[at..at + 8].copy_from_slice(&id.to_ne_bytes());
            entry
        };
        let sector = offset_of!(RawHead, sector);
        let stack = |id| {
            with(
                TYPE_STACK,
                size_of::<RawStack>(),
                offset_of!(RawStack, id),
                id,
            )
        };
        let call = |id| with(TYPE_CALL, CALL, sector, id);
        // The handle's transaction is open: the next segment repeats it.
        let mut handle = with(TYPE_HANDLE, HANDLE, sector, 7);
        handle[offset_of!(RawHandle, tid)] = 1;
        for entry in [stack(5), stack(6), stack(7), call(5), call(5), handle] {
            tables.push(&entry).unwrap();
        }
        tables.begin_segment(&folders[1]).unwrap();
        for entry in [call(6), call(5), call(8), call(NONE)] {
            tables.push(&entry).unwrap();
        }
        assert!(tables.knows_stack(6) && !tables.knows_stack(8));
        tables.tid = 9;
        tables.begin_segment(&folders[2]).unwrap();
        tables.flush().unwrap();
        let told = dirs.each_ref().map(|dir| {
            let path = dir.path().join(layout::STACK);
            let table = std::fs::File::open(&path).unwrap();
            let table = TableReader::new(table, &path, false).unwrap();
            let id = |entry| match entry {
                Ok(Entry::Stack(stack, _)) => stack.id.get(),
                other => panic!("{other:?}"),
            };
            table.map(id).collect::<Vec<u64>>()
        });
        assert_eq!(told, [vec![5, 7], vec![7, 6, 5], vec![]]);
    }
}
