// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names in entries of files.

use std::mem::offset_of;

use mostrace_bundle::entry::{Flags, RawFile, RawHead};

use super::NameFilter;
use super::tables::u16_at;

const FILE_LEN: usize = size_of::<RawFile>();
const NAME_LEN_AT: usize = offset_of!(RawFile, name_len);

/// Splits a name as a source writes it into its last component and, if it is given, its whole path. Tracepoints tell the path. Of
/// the probes the folders follow the name, from the lowest on, with a slash behind each and one for the root.
fn unfold(name: &[u8]) -> (&[u8], Option<Vec<u8>>) {
    if name.starts_with(b"/") && !name.ends_with(b"/") {
        let last = name.rsplit(|&b| b == b'/').next();
        return (last.unwrap_or(name), None);
    }
    let Some(names) = name.strip_suffix(b"/").filter(|names| !names.is_empty()) else {
        return (name, None);
    };
    let mut path = Vec::with_capacity(name.len());
    for component in names.rsplit(|&b| b == b'/') {
        path.push(b'/');
        path.extend(component);
    }
    let last = names.split(|&b| b == b'/').next();
    (last.unwrap_or(names), Some(path))
}

/// Converts names of files to the table's form. Most entries have the same file as the one before, so the last name is kept.
pub(super) struct FileNames {
    filter: NameFilter,
    /// The last name, as written by the source.
    last: Vec<u8>,
    /// The last name as it is stored, padded with NULs to a multiple of 8; None if the filter drops it.
    kept: Option<Vec<u8>>,
    record: Vec<u8>,
}

impl FileNames {
    /// Starts; only names that `filter` accepts are kept.
    pub fn new(filter: NameFilter) -> FileNames {
        FileNames {
            filter,
            last: Vec::new(),
            kept: Some(Vec::new()),
            record: Vec::new(),
        }
    }

    /// Trims a file's entry to its own name, or to no name if the filter drops it. A source may leave unused room behind the
    /// name, and does not filter names. Returns None for a malformed entry.
    pub fn trim(&mut self, entry: &[u8]) -> Option<&[u8]> {
        let name_len = usize::from(u16_at(entry, NAME_LEN_AT)?);
        let name = entry.get(FILE_LEN..FILE_LEN + name_len)?;
        if name != self.last {
            self.learn(name);
        }
        let record = &mut self.record;
        record.clear();
        record.extend_from_slice(entry.get(..FILE_LEN)?);
        match &self.kept {
            Some(name) => record.extend_from_slice(name),
            None => {
                record[NAME_LEN_AT..NAME_LEN_AT + 2].fill(0);
                record[offset_of!(RawHead, flags)] |= Flags::NAME_WITHHELD.0;
            }
        }
        let size = u16::try_from(record.len()).ok()?;
        let size_at = offset_of!(RawHead, size);
        record[size_at..size_at + 2].copy_from_slice(&size.to_ne_bytes());
        Some(record)
    }

    fn learn(&mut self, name: &[u8]) {
        self.last.clear();
        self.last.extend_from_slice(name);
        let (last, path) = unfold(name);
        let is_kept = name.is_empty() || self.filter.keeps(last);
        self.kept = is_kept.then(|| {
            let mut kept = path.unwrap_or_else(|| name.to_vec());
            kept.resize(kept.len().next_multiple_of(8), 0);
            kept
        });
    }
}

#[cfg(test)]
mod tests {
    use mostrace_bundle::Entry;
    use mostrace_bundle::entry::TYPE_FILE;

    use super::*;

    fn raw(name: &[u8]) -> Vec<u8> {
        let mut r = vec![0; FILE_LEN + 256];
        r[..2].copy_from_slice(&TYPE_FILE.to_ne_bytes());
        r[NAME_LEN_AT..NAME_LEN_AT + 2].copy_from_slice(&(name.len() as u16).to_ne_bytes());
        r[FILE_LEN..FILE_LEN + name.len()].copy_from_slice(name);
        r
    }

    #[test]
    fn a_file_entry_is_trimmed_to_its_name() {
        let mut temp = FileNames::new("temp".parse::<NameFilter>().unwrap());
        for (name, kept) in [
            (&b"a.db-wal"[..], true),
            (b"a.db", false),
            (b"a.db", false),
            (b"a.db-wal", true),
            (b"a.db-wal", true),
            (b"", false),
            (&[b'x'; 255], false),
        ] {
            let record = temp.trim(&raw(name)).unwrap();
            let Entry::File(entry) = Entry::decode(record).unwrap() else {
                panic!("not a file")
            };
            assert_eq!(entry.name, if kept { name } else { b"" });
            let withheld = entry.raw.head.flags.has(Flags::NAME_WITHHELD);
            assert_eq!(withheld, !kept && !name.is_empty());
            assert_eq!(record.len() % 8, 0);
        }
    }

    #[test]
    fn a_path_is_stored_from_the_root_on() {
        let mut temp = FileNames::new("temp".parse::<NameFilter>().unwrap());
        for (told, kept) in [
            ("a.db-wal/files/app/", "/app/files/a.db-wal"),
            ("a.tmp/", "/a.tmp"),
            ("/app/files/a.db-wal", "/app/files/a.db-wal"),
            ("/a.tmp/b.db", ""),
            ("a.db/x.tmp/", ""),
            ("/", ""),
        ] {
            let record = temp.trim(&raw(told.as_bytes())).unwrap();
            let Entry::File(entry) = Entry::decode(record).unwrap() else {
                panic!("not a file")
            };
            assert_eq!(entry.name, kept.as_bytes(), "{told}");
        }
        let mut all = FileNames::new(NameFilter::default());
        let root = all.trim(&raw(b"/")).unwrap();
        assert_eq!(root.get(FILE_LEN..FILE_LEN + 1), Some(&b"/"[..]));
    }
}
