// SPDX-License-Identifier: MIT OR Apache-2.0
//! Completions, entries and maps made by hand.

mod conserve;
mod dirtiers;
mod filesystems;
mod joining;
mod kinds;
mod names;
mod overlap;
mod owners;
mod pending;

use std::collections::{BTreeMap, HashMap};

use std::path::Path;

use mostrace_bundle::entry::{
    Contents, FileEntry, Flags, Home, Jbd2, NONE, Origin, RawDirtier, RawFile, RawHead, RawProcess,
    Stage, TYPE_DIRTIER, TYPE_FILE, TYPE_PROCESS, What,
};

use mostrace_bundle::table::{TableReader, header};
use zerocopy::IntoBytes;

use super::{Attributor, File, FileId, JournalBlock, Names, Op, Process, Request, Row};
use crate::blktrace::action::{BLK_TC_FLUSH, BLK_TC_SYNC, BLK_TC_WRITE, ta};
use crate::blktrace::{Completion, Part};
use mostrace_map::class::Kind;
use mostrace_map::{Extent, Inode, Map, Name};

pub const WRITE: u64 = BLK_TC_WRITE | BLK_TC_SYNC | ta::COMPLETE;
pub const DEVICE_FLUSH: u64 = BLK_TC_FLUSH | ta::COMPLETE;

/// Makes a write by thread 7 in one bio: Q at `t`, I at `t + 10`, D at `t + 20`, C at `t + 100`, all in µs.
pub fn write(t: u64, sector: u64, bytes: u32) -> Completion<'static> {
    let us = |offset: u64| (t + offset) * 1000;
    let part = Part {
        sector,
        bytes,
        q_ns: Some(us(0)),
        q_cpu: Some(0),
        pid: Some(7),
    };
    Completion {
        time_ns: us(100),
        device: 7 << 20,
        action: WRITE,
        sector,
        moved: 0,
        begins_zone: false,
        bytes,
        error: 0,
        cpu: 0,
        device_flush: None,
        d_ns: Some(us(20)),
        d_cpu: Some(0),
        i_ns: Some(us(10)),
        i_cpu: Some(0),
        twin: false,
        g_ns: Some(us(1)),
        sequential: false,
        parts: vec![part].leak(),
    }
}

/// Makes an empty flush, which is not issued itself: Q at `t`, C at `t + 100`, in µs.
pub fn flush(t: u64) -> Completion<'static> {
    Completion {
        d_ns: None,
        d_cpu: None,
        ..write(t, 0, 0)
    }
}

fn head(kind: u16, t: u64, sector: u64, bytes: u32) -> RawHead {
    RawHead {
        kind: kind.into(),
        dev: (7 << 20).into(),
        time_ns: ((t + 10) * 1000 - 1).into(),
        sector: sector.into(),
        bytes: bytes.into(),
        stage: Stage::INSERT,
        ..RawHead::default()
    }
}

/// Makes the process entry of [`write`], right before I.
pub fn process(t: u64, sector: u64, bytes: u32) -> RawProcess {
    let mut comm = [0; 16];
    comm[..3].copy_from_slice(b"app");
    RawProcess {
        head: head(TYPE_PROCESS, t, sector, bytes),
        submit_ns: (t * 1000).into(),
        home_sector: NONE.into(),
        pid: 7.into(),
        tgid: 6.into(),
        uid: 1000.into(),
        opf: 1.into(),
        origin: Origin::FILE,
        comm,
        ..RawProcess::default()
    }
}

/// Makes the dirtier entry of [`write`]: thread `pid` dirtied it 5 ms before Q.
pub fn dirtier(t: u64, sector: u64, bytes: u32, pid: u32) -> RawDirtier {
    let mut comm = [0; 16];
    comm[..6].copy_from_slice(b"writer");
    RawDirtier {
        head: head(TYPE_DIRTIER, t, sector, bytes),
        dirty_ns: (t * 1000).saturating_sub(5_000_000).into(),
        pid: pid.into(),
        tgid: pid.into(),
        uid: 1000.into(),
        pad: 0.into(),
        comm,
    }
}

/// Makes the file entry of [`write`]: inode 12, generation 1, offset 0, in the root directory.
pub fn file(t: u64, sector: u64, bytes: u32, name: &str) -> FileEntry {
    FileEntry {
        raw: RawFile {
            head: head(TYPE_FILE, t, sector, bytes),
            ino: 12.into(),
            parent: 2.into(),
            generation: 1.into(),
            s_dev: (7 << 20).into(),
            nlink: 1.into(),
            origin: Origin::FILE,
            what: What::REGULAR,
            ..RawFile::default()
        },
        name: name.into(),
    }
}

/// Makes a map of 4 KiB blocks, 8 sectors each: superblock, inode table, directory of inode 2, `/a.db` in two pieces with a
/// free block between them, the journal, an extent block of `/a.db`. It covers sectors 0 to 79. `/a.db` is inode 12 of
/// generation 1, inode 13 is `/sub`, inode 14 an empty `/sub/x`.
pub fn map() -> Map {
    let extent = |block: u64, blocks: u64, kind, inode, file_offset| Extent {
        sector: block * 8,
        sectors: blocks * 8,
        kind,
        inode,
        file_offset,
    };
    let extents = vec![
        extent(0, 1, Kind::Superblock, 0, None),
        extent(1, 1, Kind::InodeTable, 0, None),
        extent(2, 1, Kind::Directory, 2, Some(0)),
        extent(3, 1, Kind::Regular, 12, Some(0)),
        extent(5, 1, Kind::Regular, 12, Some(4096)),
        extent(6, 2, Kind::JournalBlock, 8, Some(0)),
        extent(8, 1, Kind::ExtentTree, 12, None),
        extent(9, 1, Kind::Directory, 13, Some(0)),
    ];
    let inode = |generation, parent, name: &str| Inode {
        generation: Some(generation),
        names: vec![Name {
            parent,
            name: name.as_bytes().into(),
        }],
        deleted: false,
        changed_ns: None,
    };
    let inodes = HashMap::from([
        (2, inode(0, 2, "")),
        (12, inode(1, 2, "a.db")),
        (13, inode(1, 2, "sub")),
        (14, inode(5, 13, "x")),
    ]);
    Map::new(0, 80, extents, inodes)
}

/// Attributes the completions and checks that every byte comes out.
pub fn attribute(
    completions: &[Completion<'_>],
    processes: Vec<RawProcess>,
    files: Vec<FileEntry>,
    map: Option<&Map>,
) -> Attributed {
    attribute_with(completions, processes, files, vec![], map)
}

/// Attributes with dirtier entries too.
pub fn attribute_with(
    completions: &[Completion<'_>],
    processes: Vec<RawProcess>,
    files: Vec<FileEntry>,
    dirtiers: Vec<RawDirtier>,
    map: Option<&Map>,
) -> Attributed {
    attribute_missing(completions, processes, files, dirtiers, map, 0)
}

/// Attributes a recording in which the kernel skipped so many runs of probes.
pub fn attribute_missing(
    completions: &[Completion<'_>],
    processes: Vec<RawProcess>,
    files: Vec<FileEntry>,
    dirtiers: Vec<RawDirtier>,
    map: Option<&Map>,
    misses: u64,
) -> Attributed {
    let tables = [
        table(processes.iter().map(|p| record(p.as_bytes(), b""))),
        table(files.iter().map(file_record)),
        table(dirtiers.iter().map(|d| record(d.as_bytes(), b""))),
    ];
    let reader = |table| TableReader::new(table, Path::new("table"), false).unwrap();
    let mut readers = tables.each_ref().map(|table| reader(&table[..]));
    let losses = BTreeMap::from([("probe_misses".to_owned(), misses)]);
    let attributor = Attributor::new(readers.iter_mut().collect(), map);
    let mut attributor = attributor.with_losses(&losses);
    let mut attributed = Attributed::default();
    for completion in completions {
        let (request, rows) = attributor.push(completion).unwrap();
        attributed.push(request, rows);
    }
    attributed.names = attributor.finish(None).unwrap();
    for (completion, (request, _, rows)) in completions.iter().zip(attributed.by_request()) {
        assert_eq!(request.bytes, completion.bytes);
        let bytes: u64 = rows.iter().map(|row| u64::from(row.bytes)).sum();
        assert_eq!(bytes, u64::from(completion.bytes), "{rows:?}");
    }
    attributed
}

/// Returns the bytes of a table as a bundle stores it.
fn table(records: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    header().into_iter().chain(records.flatten()).collect()
}

fn file_record(entry: &FileEntry) -> Vec<u8> {
    let name_len = u16::try_from(entry.name.len()).unwrap().into();
    let raw = RawFile {
        name_len,
        ..entry.raw
    };
    record(raw.as_bytes(), &entry.name)
}

/// Returns an entry's bytes, with the size in its head.
fn record(fixed: &[u8], name: &[u8]) -> Vec<u8> {
    let mut record = [fixed, name].concat();
    record.resize(record.len().next_multiple_of(8), 0);
    let size = u16::try_from(record.len()).unwrap();
    record[2..4].copy_from_slice(&size.to_le_bytes());
    record
}

/// A whole attributed trace in memory, against which tables are checked.
#[derive(Clone, Debug, Default)]
pub struct Attributed {
    pub requests: Vec<Request>,
    pub rows: Vec<Row>,
    /// The end of each request's rows, as an index in `rows`.
    pub ends: Vec<usize>,
    pub names: Names,
}

impl Attributed {
    pub fn push(&mut self, request: Request, rows: &[Row]) {
        assert!(!rows.is_empty());
        self.requests.push(request);
        self.rows.extend_from_slice(rows);
        self.ends.push(self.rows.len());
    }

    /// Returns every completion with its operation and its rows.
    pub fn by_request(&self) -> impl Iterator<Item = (&Request, Op, &[Row])> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        std::iter::zip(&self.requests, starts.zip(&self.ends))
            .map(|(request, (start, &end))| (request, request.op, &self.rows[start..end]))
    }

    pub fn process(&self, row: &Row) -> &Process {
        self.names.process(row.process)
    }

    pub fn dirtier(&self, row: &Row) -> &Process {
        self.names.process(row.dirtier)
    }

    pub fn file(&self, row: &Row) -> Option<&File> {
        self.names.file(row.file)
    }

    pub fn file_of(&self, id: FileId) -> Option<&File> {
        self.names.file(id)
    }

    pub fn journal_block<'r>(&self, row: &'r Row) -> Option<&'r JournalBlock> {
        row.journal.as_ref()
    }

    pub fn provenance(&self, row: &Row) -> Option<mostrace_map::class::Provenance> {
        self.names.provenance(row)
    }
}

/// Returns the path of a row's file as text.
pub fn path(attributed: &Attributed, row: &Row) -> Option<String> {
    attributed
        .file(row)?
        .path
        .as_deref()
        .map(crate::text::escape)
}
