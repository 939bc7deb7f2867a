// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bundle's entry tables, fed with entries as the kernel hands them over.

use std::collections::BTreeMap;
use std::mem::offset_of;
use std::path::PathBuf;

use mostrace_bundle::entry::{
    Flags, RawDirtier, RawFile, RawFreed, RawHead, RawProcess, TYPE_DIRTIER, TYPE_FILE, TYPE_FREED,
    TYPE_PROCESS,
};
use mostrace_bundle::table::{HEADER_LEN, TableWriter};
use mostrace_bundle::{Folder, layout};

use zerocopy::FromBytes;

use super::Cut;
use crate::cut::{Ends, Part, Recent};
use crate::error::{At, Error, Result};
use crate::names::NameFilter;

/// What is kept of the last entries, bytes: at least half of it, which those of some 10,000 bios take.
const RECENT: usize = 8 << 20;

/// Entries kept, by the manifest's names.
pub(crate) type Counts = Vec<(&'static str, u64)>;

/// One table.
pub(crate) struct Table {
    pub path: PathBuf,
    pub out: TableWriter,
    pub kept: u64,
    /// Bytes of entries that were repeated at its beginning.
    repeated: u64,
}

impl Table {
    /// Makes the file in `folder`.
    ///
    /// # Errors
    /// The bundle cannot be written.
    pub fn create(folder: &Folder, name: &str) -> Result<Table> {
        let path = folder.path().join(name);
        let out = TableWriter::new(folder.replace(name)?).at(&path)?;
        Ok(Table {
            path,
            out,
            kept: 0,
            repeated: 0,
        })
    }

    /// Appends a record.
    ///
    /// # Errors
    /// The bundle cannot be written.
    pub fn push(&mut self, record: &[u8]) -> Result<()> {
        self.kept += 1;
        self.out.push(record).at(&self.path)
    }

    /// Appends a record that the segment before has too.
    ///
    /// # Errors
    /// The bundle cannot be written.
    pub fn repeat(&mut self, record: &[u8]) -> Result<()> {
        self.repeated += record.len() as u64;
        self.out.push(record).at(&self.path)
    }

    /// Where its own records begin.
    pub fn own_from(&self) -> u64 {
        HEADER_LEN as u64 + self.repeated
    }
}

/// The files of the tables.
struct Files {
    process: Table,
    file: Table,
    dirtier: Table,
    freed: Table,
}

impl Files {
    fn create(folder: &Folder) -> Result<Files> {
        Ok(Files {
            process: Table::create(folder, layout::PROCESS)?,
            file: Table::create(folder, layout::FILE)?,
            dirtier: Table::create(folder, layout::DIRTIER)?,
            freed: Table::create(folder, layout::FREED)?,
        })
    }

    fn all(&mut self) -> [(&'static str, &mut Table); 4] {
        [
            (layout::PROCESS, &mut self.process),
            (layout::FILE, &mut self.file),
            (layout::DIRTIER, &mut self.dirtier),
            (layout::FREED, &mut self.freed),
        ]
    }

    /// That of a type of entry.
    fn of(&mut self, kind: u16) -> Option<&mut Table> {
        Some(match kind {
            TYPE_PROCESS => &mut self.process,
            TYPE_FILE => &mut self.file,
            TYPE_DIRTIER => &mut self.dirtier,
            TYPE_FREED => &mut self.freed,
            _ => return None,
        })
    }

    fn counts(&self) -> Counts {
        vec![
            ("process_entries", self.process.kept),
            ("file_entries", self.file.kept),
            ("dirtier_entries", self.dirtier.kept),
            ("freed_entries", self.freed.kept),
        ]
    }
}

/// The tables of one recording.
pub(crate) struct Tables {
    files: Files,
    names: FileNames,
    /// For messages: whose entries these are.
    source: String,
    recent: Recent,
    /// While a cut is made: what is of this time or later is of the next segment, and kept back.
    next_from_ns: Option<u64>,
    next: Vec<Vec<u8>>,
}

impl Tables {
    /// Makes the files in `folder`, in place of those of a source that was tried before. If the recording `is_cut`,
    /// [`Tables::cut`] will be called.
    pub fn create(
        folder: &Folder,
        names: NameFilter,
        source: &str,
        is_cut: bool,
    ) -> Result<Tables> {
        Ok(Tables {
            files: Files::create(folder)?,
            names: FileNames::new(names),
            source: source.to_owned(),
            recent: Recent::new(if is_cut { RECENT } else { 0 }),
            next_from_ns: None,
            next: Vec::new(),
        })
    }

    /// Takes one entry. Returns whether it was of a type that there is a table for.
    ///
    /// # Errors
    /// It makes no sense, or the bundle cannot be written.
    pub fn take(&mut self, entry: &[u8]) -> Result<bool> {
        let Tables {
            files,
            names,
            source,
            recent,
            next_from_ns,
            next,
        } = self;
        let malformed = || Error::malformed(&*source, "malformed entry");
        let kind = u16_at(entry, offset_of!(RawHead, kind)).ok_or_else(malformed)?;
        let record = match kind {
            TYPE_PROCESS => fixed::<RawProcess>(entry),
            TYPE_FILE => names.cut(entry),
            TYPE_DIRTIER => fixed::<RawDirtier>(entry),
            TYPE_FREED => fixed::<RawFreed>(entry),
            _ => return Ok(false),
        };
        let record = record.ok_or_else(malformed)?;
        if next_from_ns.is_some_and(|from| time_of(record) >= from) {
            next.push(record.to_vec());
            return Ok(true);
        }
        put(files, recent, kind, record)?;
        Ok(true)
    }

    /// From now on keeps back what is of `at_ns` or later, until [`Tables::cut`].
    pub fn keep_from(&mut self, at_ns: u64) {
        self.next_from_ns = Some(at_ns);
    }

    /// Goes on in `folder`: with the entries that none of `ends` ended, which are in the tables before too, and with what
    /// was kept back.
    ///
    /// # Errors
    /// The bundle cannot be written.
    pub fn cut(&mut self, folder: &Folder, mut ends: Ends) -> Result<Cut> {
        self.flush()?;
        let counts = self.files.counts();
        self.files = Files::create(folder)?;
        let (_, recent) = self.recent.take();
        for record in under_way(&recent, &mut ends) {
            self.recent.push(time_of(record), record);
            let kind = u16_at(record, offset_of!(RawHead, kind)).unwrap_or(0);
            if let Some(table) = self.files.of(kind) {
                table.repeat(record)?;
            }
        }
        self.next_from_ns = None;
        for record in std::mem::take(&mut self.next) {
            let kind = u16_at(&record, offset_of!(RawHead, kind)).unwrap_or(0);
            put(&mut self.files, &mut self.recent, kind, &record)?;
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
}

fn put(files: &mut Files, recent: &mut Recent, kind: u16, record: &[u8]) -> Result<()> {
    // Those are of no request.
    if kind != TYPE_FREED {
        recent.push(time_of(record), record);
    }
    files.of(kind).map_or(Ok(()), |table| table.push(record))
}

/// The entries, one behind the other, that none of `ends` ended; in the order of time, as the tables are.
fn under_way<'a>(recent: &'a [u8], ends: &mut Ends) -> Vec<&'a [u8]> {
    let mut records = Vec::new();
    let mut rest = recent;
    while let Ok((head, _)) = RawHead::ref_from_prefix(rest) {
        let size = usize::from(head.size.get());
        let Some((record, behind)) = rest.split_at_checked(size).filter(|_| size > 0) else {
            break;
        };
        records.push((head, record));
        rest = behind;
    }
    records.sort_by_key(|(head, _)| head.time_ns.get());
    records.reverse();
    records.retain(|(head, _)| {
        !ends.end(&Part {
            // Beside the kinds of events.
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

fn time_of(entry: &[u8]) -> u64 {
    RawHead::ref_from_prefix(entry).map_or(0, |(head, _)| head.time_ns.get())
}

fn u16_at(entry: &[u8], at: usize) -> Option<u16> {
    let bytes = entry.get(at..at + 2)?.try_into().ok()?;
    Some(u16::from_ne_bytes(bytes))
}

/// An entry that is a `T` and nothing else, as its own size has to say: readers go by it.
fn fixed<T>(entry: &[u8]) -> Option<&[u8]> {
    let size = usize::from(u16_at(entry, offset_of!(RawHead, size))?);
    entry.get(..size).filter(|_| size == size_of::<T>())
}

const FILE_LEN: usize = size_of::<RawFile>();
const NAME_LEN_AT: usize = offset_of!(RawFile, name_len);

/// The last component of a name as the probes tell it, and its whole path if they do: the folders follow the name, from
/// the lowest on, a slash behind each and one for the root.
fn unfold(name: &[u8]) -> (&[u8], Option<Vec<u8>>) {
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

/// The names of files, as the table has them. Most entries follow one of the same file: the last name is known.
pub(crate) struct FileNames {
    filter: NameFilter,
    /// The last one, as the probe told it.
    told: Vec<u8>,
    /// As it is kept, with NULs up to a multiple of 8; None if the file was not asked for.
    kept: Option<Vec<u8>>,
    record: Vec<u8>,
}

impl FileNames {
    /// Keeps the names that the filter does.
    pub fn new(filter: NameFilter) -> FileNames {
        FileNames {
            filter,
            told: Vec::new(),
            kept: Some(Vec::new()),
            record: Vec::new(),
        }
    }

    /// A source may leave room for the longest name, and names all files: cuts the entry to its own
    /// name, or, if the file was not asked for, to none. None of an entry that makes no sense.
    pub fn cut(&mut self, entry: &[u8]) -> Option<&[u8]> {
        let name_len = usize::from(u16_at(entry, NAME_LEN_AT)?);
        let name = entry.get(FILE_LEN..FILE_LEN + name_len)?;
        if name != self.told {
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
        self.told.clear();
        self.told.extend_from_slice(name);
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
    use super::*;
    use mostrace_bundle::Entry;

    fn raw(name: &[u8]) -> Vec<u8> {
        let mut r = vec![0; FILE_LEN + 256];
        r[..2].copy_from_slice(&TYPE_FILE.to_ne_bytes());
        r[NAME_LEN_AT..NAME_LEN_AT + 2].copy_from_slice(&(name.len() as u16).to_ne_bytes());
        r[FILE_LEN..FILE_LEN + name.len()].copy_from_slice(name);
        r
    }

    #[test]
    fn a_file_entry_is_cut_to_its_name() {
        let mut temp = FileNames::new(NameFilter::parse("temp").unwrap());
        for (name, kept) in [
            (&b"a.db-wal"[..], true),
            (b"a.db", false),
            (b"a.db", false),
            (b"a.db-wal", true),
            (b"a.db-wal", true),
            (b"", false),
            (&[b'x'; 255], false),
        ] {
            let record = temp.cut(&raw(name)).unwrap();
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
    fn a_path_told_upwards_is_turned_round() {
        let mut temp = FileNames::new(NameFilter::parse("temp").unwrap());
        for (told, kept) in [
            ("a.db-wal/files/app/", "/app/files/a.db-wal"),
            ("a.tmp/", "/a.tmp"),
            ("a.db/x.tmp/", ""),
            ("/", ""),
        ] {
            let record = temp.cut(&raw(told.as_bytes())).unwrap();
            let Entry::File(entry) = Entry::decode(record).unwrap() else {
                panic!("not a file")
            };
            assert_eq!(entry.name, kept.as_bytes(), "{told}");
        }
        let mut all = FileNames::new(NameFilter::parse("all").unwrap());
        let root = all.cut(&raw(b"/")).unwrap();
        assert_eq!(root.get(FILE_LEN..FILE_LEN + 1), Some(&b"/"[..]));
    }

    #[test]
    fn entries_of_another_size_are_malformed() {
        let dir = tempfile::tempdir().unwrap();
        let names = NameFilter::parse("all").unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let mut tables = Tables::create(&folder, names, "here", false).unwrap();
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
            assert!(tables.take(&entry(kind, len)).unwrap());
            let short = tables.take(&entry(kind, len - 8)).unwrap_err();
            assert_eq!(short.to_string(), "here: malformed entry");
        }
        let mut long_name = entry(TYPE_FILE, 72);
        long_name[NAME_LEN_AT] = 1;
        for bad in [
            &entry(TYPE_PROCESS, 96),
            &entry(TYPE_DIRTIER, 80),
            &long_name,
        ] {
            assert!(tables.take(bad).is_err(), "{bad:?}");
        }
        assert!(!tables.take(&entry(99, 40)).unwrap());
        let kept: Vec<u64> = tables.counts().iter().map(|(_, kept)| *kept).collect();
        assert_eq!(kept, [1, 1, 1, 1]);
    }
}
