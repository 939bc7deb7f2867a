// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bundle's tables of causes, fed with entries as the probes hand them over.

use std::collections::HashMap;
use std::mem::offset_of;

use mostrace_bundle::entry::{
    NONE, RawCall, RawDirtied, RawHandle, RawHead, TYPE_CALL, TYPE_DIRTIED, TYPE_HANDLE,
};
use mostrace_bundle::{Folder, layout};

use crate::entries::{Counts, Table};
use crate::error::{At, Error, Result};

const HANDLE: usize = size_of::<RawHandle>();
const DIRTIED: usize = size_of::<RawDirtied>();
const CALL: usize = size_of::<RawCall>();

/// The tables of one recording.
pub(crate) struct Tables {
    handle: Table,
    dirtied: Table,
    call: Table,
    functions: Functions,
}

impl Tables {
    /// Makes the files in `folder`.
    pub fn create(folder: &Folder) -> Result<Tables> {
        Ok(Tables {
            handle: Table::create(folder, layout::HANDLE)?,
            dirtied: Table::create(folder, layout::DIRTIED)?,
            call: Table::create(folder, layout::CALL)?,
            functions: Functions::default(),
        })
    }

    /// Takes one entry.
    ///
    /// # Errors
    /// It makes no sense, or the bundle cannot be written.
    pub fn take(&mut self, entry: &[u8]) -> Result<()> {
        let kind = entry.get(..2).and_then(|b| b.try_into().ok());
        match (kind.map(u16::from_ne_bytes), entry.len()) {
            (Some(TYPE_HANDLE), HANDLE) => {
                let entry = self.functions.number(entry);
                self.handle.push(&entry)
            }
            (Some(TYPE_DIRTIED), DIRTIED) => self.dirtied.push(entry),
            (Some(TYPE_CALL), CALL) => self.call.push(entry),
            _ => Err(Error::malformed("BPF probes", "malformed entry")),
        }
    }

    /// Hands what is buffered to the kernel.
    pub fn flush(&mut self) -> Result<()> {
        [&mut self.handle, &mut self.dirtied, &mut self.call]
            .into_iter()
            .try_for_each(|table| table.out.flush().at(&table.path))
    }

    /// Entries kept so far.
    pub fn counts(&self) -> Counts {
        vec![
            ("handle_entries", self.handle.kept),
            ("dirtied_entries", self.dirtied.kept),
            ("call_entries", self.call.kept),
        ]
    }

    /// The addresses of the functions that began handles, in the order of their numbers in the table.
    pub fn functions(&self) -> &[u64] {
        &self.functions.addresses
    }
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
        let mut tables = Tables::create(&folder).unwrap();
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

    #[test]
    fn entries_of_another_size_or_type_are_malformed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let mut tables = Tables::create(&folder).unwrap();
        for (kind, len) in [(TYPE_HANDLE, 120), (TYPE_DIRTIED, 48), (TYPE_CALL, 120)] {
            tables.take(&entry(kind, len)).unwrap();
            assert!(tables.take(&entry(kind, len + 8)).is_err(), "{kind}");
        }
        assert!(tables.take(&entry(1, 88)).is_err() && tables.take(&[]).is_err());
        let kept: Vec<u64> = tables.counts().iter().map(|(_, kept)| *kept).collect();
        assert_eq!(kept, [1, 1, 1]);
    }
}
