// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bundle's tables of causes, fed with entries as the probes hand them over.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::mem::offset_of;

use mostrace_bundle::entry::{
    NONE, RawCall, RawDirtied, RawF2fs, RawFile, RawHandle, RawHead, TYPE_CALL, TYPE_DIRTIED,
    TYPE_F2FS, TYPE_FILE, TYPE_FORK, TYPE_HANDLE,
};
use mostrace_bundle::{Folder, layout};

use super::family::{FORK, Family};
use crate::cut::Recent;
use crate::entries::{Counts, Cut, FileNames, Table};
use crate::error::{At, Error, Result};
use crate::names::NameFilter;

const HANDLE: usize = size_of::<RawHandle>();
const DIRTIED: usize = size_of::<RawDirtied>();
const CALL: usize = size_of::<RawCall>();
const F2FS: usize = size_of::<RawF2fs>();

/// The files of the tables.
struct Files {
    handle: Table,
    dirtied: Table,
    call: Table,
    called: Table,
    f2fs: Table,
    fork: Table,
}

impl Files {
    fn create(folder: &Folder) -> Result<Files> {
        Ok(Files {
            handle: Table::create(folder, layout::HANDLE)?,
            dirtied: Table::create(folder, layout::DIRTIED)?,
            call: Table::create(folder, layout::CALL)?,
            called: Table::create(folder, layout::CALLED)?,
            f2fs: Table::create(folder, layout::F2FS)?,
            fork: Table::create(folder, layout::FORK)?,
        })
    }

    fn all(&mut self) -> [(&'static str, &mut Table); 6] {
        [
            (layout::HANDLE, &mut self.handle),
            (layout::DIRTIED, &mut self.dirtied),
            (layout::CALL, &mut self.call),
            (layout::CALLED, &mut self.called),
            (layout::F2FS, &mut self.f2fs),
            (layout::FORK, &mut self.fork),
        ]
    }

    fn counts(&self) -> Counts {
        vec![
            ("handle_entries", self.handle.kept),
            ("dirtied_entries", self.dirtied.kept),
            ("call_entries", self.call.kept),
            ("called_entries", self.called.kept),
            ("f2fs_entries", self.f2fs.kept),
            ("fork_entries", self.fork.kept),
        ]
    }
}

/// What is kept of the last handles and dirtied blocks, bytes: at least half of it.
const RECENT: usize = 8 << 20;
/// Steps of f2fs's that are kept: a checkpoint, or a collection, that goes on is among them, and who waits for it.
const STEPS: usize = 64;

/// Names of files that are told anew when the recording is cut; of more, those so far are forgotten.
const NAMES: usize = 1 << 14;

/// The tables of one recording.
pub(crate) struct Tables {
    files: Files,
    names: FileNames,
    /// By each name, the last file of it, if the recording is cut.
    named: BTreeMap<Vec<u8>, Vec<u8>>,
    functions: Functions,
    recent: Recent,
    /// The latest steps of f2fs's, if the recording is cut.
    steps: VecDeque<[u8; F2FS]>,
    family: Family,
    is_cut: bool,
    /// The newest transaction.
    tid: u32,
}

impl Tables {
    /// Makes the files in `folder`. If the recording `is_cut`, [`Tables::cut`] will be called.
    ///
    /// # Errors
    /// The bundle cannot be written.
    pub fn create(folder: &Folder, names: NameFilter, is_cut: bool) -> Result<Tables> {
        Ok(Tables {
            files: Files::create(folder)?,
            names: FileNames::new(names),
            named: BTreeMap::new(),
            functions: Functions::default(),
            recent: Recent::new(if is_cut { RECENT } else { 0 }),
            steps: VecDeque::new(),
            family: Family::default(),
            is_cut,
            tid: 0,
        })
    }

    /// Whether an entry is of a type that there is a table for.
    pub fn is_of(entry: &[u8]) -> bool {
        kind_of(entry)
            .is_some_and(|kind| [TYPE_HANDLE, TYPE_DIRTIED, TYPE_CALL, TYPE_F2FS].contains(&kind))
    }

    /// Takes one entry.
    ///
    /// # Errors
    /// It makes no sense, or the bundle cannot be written.
    pub fn take(&mut self, entry: &[u8]) -> Result<()> {
        match (kind_of(entry), entry.len()) {
            (Some(TYPE_HANDLE), HANDLE) => {
                let entry = self.functions.number(entry);
                self.tid = tid_of(&entry).unwrap_or(self.tid);
                self.recent.push(0, &entry);
                self.files.handle.push(&entry)
            }
            (Some(TYPE_DIRTIED), DIRTIED) => {
                self.recent.push(0, entry);
                self.files.dirtied.push(entry)
            }
            (Some(TYPE_CALL), CALL) => self.files.call.push(entry),
            (Some(TYPE_FILE), _) => self.name(entry),
            (Some(TYPE_F2FS), F2FS) => {
                self.keep_step(entry);
                self.files.f2fs.push(entry)
            }
            (Some(TYPE_FORK), FORK) => match self.family.push(entry) {
                Some(record) => self.files.fork.push(&record),
                None => Ok(()),
            },
            _ => Err(Error::malformed("entries of causes", "malformed entry")),
        }
    }

    /// The command has been started, as this process.
    pub fn begin(&mut self, command: u32) {
        self.family.begin(command);
    }

    /// Takes the name of a file that calls are about.
    fn name(&mut self, entry: &[u8]) -> Result<()> {
        let malformed = || Error::malformed("entries of causes", "malformed entry");
        let record = self.names.cut(entry).ok_or_else(malformed)?;
        if self.is_cut {
            if self.named.len() >= NAMES {
                self.named.clear();
            }
            let name = record.get(size_of::<RawFile>()..).unwrap_or_default();
            self.named.insert(name.to_vec(), record.to_vec());
        }
        self.files.called.push(record)
    }

    fn keep_step(&mut self, entry: &[u8]) {
        if !self.is_cut {
            return;
        }
        if self.steps.len() >= STEPS {
            self.steps.pop_front();
        }
        self.steps.extend(<[u8; F2FS]>::try_from(entry));
    }

    /// Goes on in `folder`: with what the running and the committing transaction have, the names, f2fs's latest steps, and the
    /// command's processes, which are in the tables before too.
    ///
    /// # Errors
    /// The bundle cannot be written.
    pub fn cut(&mut self, folder: &Folder) -> Result<Cut> {
        self.flush()?;
        let counts = self.files.counts();
        self.files = Files::create(folder)?;
        let (_, recent) = self.recent.take();
        let mut rest = &recent[..];
        while let Some((entry, after)) = split(rest) {
            if tid_of(entry).is_some_and(|tid| self.tid.wrapping_sub(tid) <= 1) {
                self.recent.push(0, entry);
                match kind_of(entry) {
                    Some(TYPE_HANDLE) => self.files.handle.repeat(entry)?,
                    _ => self.files.dirtied.repeat(entry)?,
                }
            }
            rest = after;
        }
        for record in self.named.values() {
            self.files.called.repeat(record)?;
        }
        for step in &self.steps {
            self.files.f2fs.repeat(step)?;
        }
        for record in self.family.known() {
            self.files.fork.repeat(record)?;
        }
        self.flush()?;
        let own_from = self.files.all();
        let own_from = own_from.map(|(name, table)| (name.to_owned(), table.own_from()));
        Ok(Cut {
            counts,
            own_from: BTreeMap::from(own_from),
        })
    }

    /// Hands what is buffered to the kernel.
    ///
    /// # Errors
    /// The bundle cannot be written.
    pub fn flush(&mut self) -> Result<()> {
        self.files
            .all()
            .into_iter()
            .try_for_each(|(_, table)| table.out.flush().at(&table.path))
    }

    /// Entries kept so far, of the segment.
    pub fn counts(&self) -> Counts {
        self.files.counts()
    }

    /// The addresses of the functions that began handles, in the order of their numbers in the table.
    pub fn functions(&self) -> &[u64] {
        &self.functions.addresses
    }
}

fn kind_of(entry: &[u8]) -> Option<u16> {
    Some(u16::from_ne_bytes(entry.get(..2)?.try_into().ok()?))
}

/// The transaction of a handle's or a dirtied block's entry.
fn tid_of(entry: &[u8]) -> Option<u32> {
    let at = match kind_of(entry)? {
        TYPE_HANDLE => offset_of!(RawHandle, tid),
        TYPE_DIRTIED => offset_of!(RawDirtied, tid),
        _ => return None,
    };
    Some(u32::from_ne_bytes(entry.get(at..at + 4)?.try_into().ok()?))
}

/// The first entry, and what follows.
fn split(entries: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = match kind_of(entries)? {
        TYPE_HANDLE => HANDLE,
        _ => DIRTIED,
    };
    entries.split_at_checked(len)
}

/// In the bundle no address of the kernel's stands, but a number.
#[derive(Default)]
struct Functions {
    addresses: Vec<u64>,
    numbers: HashMap<u64, u64>,
}

impl Functions {
    /// A handle's entry with a number in place of the function's address.
    fn number(&mut self, entry: &[u8]) -> [u8; HANDLE] {
        const AT: usize = offset_of!(RawHandle, function);
        const _: () = assert!(AT.is_multiple_of(8) && offset_of!(RawHead, kind) == 0);
        let mut numbered = [0; HANDLE];
        numbered.copy_from_slice(entry);
        let place = &mut numbered[AT..AT + 8];
        let mut address = [0; 8];
        address.copy_from_slice(place);
        place.copy_from_slice(&self.of(u64::from_ne_bytes(address)).to_ne_bytes());
        numbered
    }

    fn of(&mut self, address: u64) -> u64 {
        if address == NONE || address == 0 {
            return NONE;
        }
        *self.numbers.entry(address).or_insert_with(|| {
            self.addresses.push(address);
            self.addresses.len() as u64 - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use mostrace_bundle::Entry;
    use mostrace_bundle::table::TableReader;

    use super::*;

    fn all() -> NameFilter {
        NameFilter::parse("all").unwrap()
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
        let mut tables = Tables::create(&folder, all(), false).unwrap();
        let addresses = [0xffff_8000_0000_1000, 0xffff_8000_0000_2000, NONE, 0];
        for address in addresses.iter().chain(&addresses) {
            let mut handle = entry(TYPE_HANDLE, size_of::<RawHandle>());
            let at = offset_of!(RawHandle, function);
            handle[at..at + 8].copy_from_slice(&u64::to_ne_bytes(*address));
            tables.take(&handle).unwrap();
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

    /// A file's journal, made anew for each transaction, has one name.
    #[test]
    fn the_next_segment_has_the_names_that_are_known() {
        let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let [first, second] = dirs.each_ref().map(|dir| Folder::open(dir.path()).unwrap());
        let mut tables = Tables::create(&first, all(), true).unwrap();
        for (ino, name) in [(7_u64, b"a.db"), (8, b"b.db"), (9, b"b.db")] {
            let mut file = entry(TYPE_FILE, 80);
            file[offset_of!(RawFile, ino)..][..8].copy_from_slice(&ino.to_ne_bytes());
            file[offset_of!(RawFile, name_len)..][..2].copy_from_slice(&4_u16.to_ne_bytes());
            file[size_of::<RawFile>()..][..4].copy_from_slice(name);
            tables.take(&file).unwrap();
        }
        let cut = tables.cut(&second).unwrap();
        assert!(cut.counts.contains(&("called_entries", 3)));
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
        let mut tables = Tables::create(&folder, all(), false).unwrap();
        tables.begin(0);
        for (kind, len) in [
            (TYPE_HANDLE, 120),
            (TYPE_DIRTIED, 48),
            (TYPE_CALL, 120),
            (TYPE_F2FS, 72),
            (TYPE_FORK, 40),
        ] {
            tables.take(&entry(kind, len)).unwrap();
            assert!(tables.take(&entry(kind, len + 8)).is_err(), "{kind}");
        }
        tables.take(&entry(TYPE_FILE, 72)).unwrap();
        assert!(tables.take(&entry(TYPE_FILE, 64)).is_err());
        assert!(tables.take(&entry(1, 88)).is_err() && tables.take(&[]).is_err());
        let kept: Vec<u64> = tables.counts().iter().map(|(_, kept)| *kept).collect();
        assert_eq!(kept, [1, 1, 1, 1, 1, 1]);
    }
}
