// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kinds of blocks: truth goes before coverage.

use super::*;
use crate::attribute::Op;
use mostrace_map::class::{Class, Provenance};
use mostrace_map::fs::jbd2::{Copy, Journal};
use mostrace_map::{ELSEWHERE, Piece};

const BLOCK: u32 = 4096;

/// Returns kind, inode and provenance of one block that has an entry of this origin and no file entry.
fn of_origin(origin: Origin, block: u64, map: Option<&Map>) -> (Kind, Option<u64>, Provenance) {
    let entry = RawProcess {
        origin,
        ..process(0, block * 8, BLOCK)
    };
    let a = attribute(&[write(0, block * 8, BLOCK)], vec![entry], vec![], map);
    let [row] = a.rows[..] else {
        panic!("{:?}", a.rows)
    };
    (
        row.kind.unwrap(),
        a.file(&row).and_then(|f| f.inode),
        a.provenance(&row).unwrap(),
    )
}

#[test]
fn the_map_answers_as_far_as_the_origin_allows() {
    use Kind::*;
    use Provenance as P;
    let map = map();
    for (origin, block, expected) in [
        (Origin::BDEV, 1, (InodeTable, None, P::Layout)),
        (Origin::BDEV, 2, (Directory, Some(2), P::Snapshot)),
        (Origin::BDEV, 8, (ExtentTree, Some(12), P::Snapshot)),
        // It was metadata then; the snapshot has a file there, or nothing, or no such place.
        (Origin::BDEV, 3, (Free, None, P::Unknown)),
        (Origin::BDEV, 4, (Free, None, P::Unknown)),
        (Origin::BDEV, 20, (Unmapped, None, P::Unknown)),
        // A fast commit has no header by which the probe could recognise it.
        (Origin::BDEV, 6, (JournalBlock, None, P::Layout)),
        (Origin::UNKNOWN, 6, (JournalBlock, None, P::Layout)),
        (Origin::JOURNAL, 6, (JournalBlock, None, P::Layout)),
        (Origin::JOURNAL, 4, (JournalBlock, None, P::Unknown)),
        // The file entry was lost: the block may have been another file's then.
        (Origin::FILE, 3, (Regular, None, P::Unknown)),
        (Origin::DIRECT, 5, (Regular, None, P::Unknown)),
        (Origin::FILE, 4, (Regular, None, P::Unknown)),
        (Origin::FILE, 2, (Regular, None, P::Unknown)),
        // These are direct IO on the device.
        (Origin::RAW, 3, (Regular, Some(12), P::Snapshot)),
        (Origin::RAW, 0, (Superblock, None, P::Layout)),
    ] {
        assert_eq!(
            of_origin(origin, block, Some(&map)),
            expected,
            "{origin:?} block {block}"
        );
    }
    for (origin, expected) in [
        (Origin::BDEV, Unmapped),
        (Origin::RAW, Unmapped),
        (Origin::FILE, Regular),
        (Origin::JOURNAL, JournalBlock),
    ] {
        assert_eq!(
            of_origin(origin, 3, None),
            (expected, None, P::Unknown),
            "{origin:?}"
        );
    }
}

/// Without entries, a block belongs to the snapshot's owner unless that was changed after the block was written.
#[test]
fn what_changed_since_may_have_got_the_block_since() {
    let mut inodes = HashMap::new();
    let known = |changed_ns| mostrace_map::Inode {
        changed_ns,
        ..mostrace_map::Inode::default()
    };
    inodes.insert(12, known(Some(1_700_000_000_000_500_000)));
    inodes.insert(13, known(None));
    let file = |sector, inode| Extent {
        sector,
        sectors: 8,
        kind: Kind::Regular,
        inode,
        file_offset: Some(0),
    };
    let map = Map::new(0, 80, vec![file(0, 12), file(8, 13)], inodes);
    let owner = |t, sector| {
        let attributor = Attributor::<&[u8]>::new(vec![], Some(&map));
        // The recording began 100 µs after boot.
        let mut attributor = attributor.with_clock(100_000, 1_700_000_000_000_000_000);
        let (_, rows) = attributor.push(&write(t, sector, BLOCK)).unwrap();
        let (kind, file) = (rows[0].kind, rows[0].file);
        let names = attributor.finish(None).unwrap();
        (kind, names.file(file).and_then(|file| file.inode))
    };
    assert_eq!(owner(599, 0), (Some(Kind::Free), None));
    assert_eq!(owner(600, 0), (Some(Kind::Regular), Some(12)));
    // It is unknown when that inode was changed.
    assert_eq!(owner(599, 8), (Some(Kind::Regular), Some(13)));
}

/// A directory's block is judged alike if the recorder does not report freed blocks.
#[test]
fn a_directory_that_changed_since_may_have_got_the_block_since() {
    let inode = mostrace_map::Inode {
        changed_ns: Some(1_700_000_000_000_500_000),
        ..mostrace_map::Inode::default()
    };
    let directory = Extent {
        sector: 0,
        sectors: 8,
        kind: Kind::Directory,
        inode: 12,
        file_offset: Some(0),
    };
    let inodes = HashMap::from_iter([(12, inode)]);
    let map = Map::new(0, 80, vec![directory], inodes);
    let owner = |t| {
        let entry = RawProcess {
            origin: Origin::BDEV,
            contents: Contents::DIRECTORY,
            ..process(t, 0, BLOCK)
        };
        let processes = table([record(entry.as_bytes(), b"")].into_iter());
        let mut processes = TableReader::new(&processes[..], Path::new("table"), false).unwrap();
        let attributor = Attributor::new(vec![&mut processes], Some(&map));
        let mut attributor = attributor.with_clock(100_000, 1_700_000_000_000_000_000);
        let (_, rows) = attributor.push(&write(t, 0, BLOCK)).unwrap();
        let (kind, file) = (rows[0].kind, rows[0].file);
        let names = attributor.finish(None).unwrap();
        (kind, names.file(file).and_then(|file| file.inode))
    };
    assert_eq!(owner(599), (Some(Kind::Directory), None));
    assert_eq!(owner(600), (Some(Kind::Directory), Some(12)));
}

#[test]
fn jbd2_blocks_go_before_the_map() {
    let map = map();
    let entry = |jbd2, block: u64, home: u64| RawProcess {
        origin: Origin::JOURNAL,
        jbd2,
        home_sector: home.into(),
        tid: 9.into(),
        ..process(0, block * 8, BLOCK)
    };
    // The map has a file there: the journal may have been elsewhere.
    for (jbd2, home, kind, home_kind) in [
        (Jbd2::DESCRIPTOR, NONE, Kind::Descriptor, None),
        (Jbd2::COMMIT, NONE, Kind::Commit, None),
        (
            Jbd2::METADATA_COPY,
            8,
            Kind::MetadataCopy,
            Some(Kind::InodeTable),
        ),
        (
            Jbd2::METADATA_COPY,
            16,
            Kind::MetadataCopy,
            Some(Kind::Directory),
        ),
        (
            Jbd2::METADATA_COPY,
            24,
            Kind::MetadataCopy,
            Some(Kind::Free),
        ),
        (Jbd2::DATA_COPY, 24, Kind::DataCopy, Some(Kind::Regular)),
    ] {
        let a = attribute(
            &[write(0, 24, BLOCK)],
            vec![entry(jbd2, 3, home)],
            vec![],
            Some(&map),
        );
        let [row] = a.rows[..] else {
            panic!("{:?}", a.rows)
        };
        assert_eq!((row.kind, row.class()), (Some(kind), Some(Class::Journal)));
        assert_eq!(a.provenance(&row), Some(Provenance::Live));
        assert_eq!(a.file(&row), None);
        let block = a.journal_block(&row).unwrap();
        assert_eq!(
            (block.tid, block.home_kind),
            (Some(9), home_kind),
            "{jbd2:?} {home}"
        );
        assert_eq!(block.home_sector, Some(home).filter(|&home| home != NONE));
    }
}

#[test]
fn parts_of_a_journals_block_know_where_it_begins() {
    let entry = RawProcess {
        origin: Origin::JOURNAL,
        jbd2: Jbd2::METADATA_COPY,
        home_sector: 1024.into(),
        tid: 9.into(),
        ..process(0, 256, 4 * BLOCK)
    };
    let parts = [0, 1, 2, 3].map(|part| write(part, 256 + part * 8, BLOCK));
    let a = attribute(&parts, vec![entry], vec![], None);
    let found = a.rows.iter().map(|row| {
        let block = a.journal_block(row).unwrap();
        assert_eq!(block.home_of_block(), Some(1024));
        (block.home_sector, block.ahead, block.behind)
    });
    let of_home = |sector, ahead, behind| (Some(sector), ahead, behind);
    let wanted = [
        of_home(1024, 0, 24),
        of_home(1032, 8, 16),
        of_home(1040, 16, 8),
        of_home(1048, 24, 0),
    ];
    assert_eq!(found.collect::<Vec<_>>(), wanted);
}

#[test]
fn a_header_alone_makes_no_journal_block_outside_the_journal() {
    use Kind::*;
    let map = map();
    for (jbd2, block, kind) in [
        (Jbd2::REVOKE, 6, Revoke),
        (Jbd2::SUPERBLOCK, 6, Jbd2Superblock),
        // The journal is external.
        (Jbd2::SUPERBLOCK, 20, Jbd2Superblock),
        // A directory's block begins with the same bytes; the other block was something else.
        (Jbd2::REVOKE, 2, Directory),
        (Jbd2::SUPERBLOCK, 3, Free),
    ] {
        let entry = RawProcess {
            origin: Origin::JOURNAL,
            jbd2,
            ..process(0, block * 8, BLOCK)
        };
        let a = attribute(
            &[write(0, block * 8, BLOCK)],
            vec![entry],
            vec![],
            Some(&map),
        );
        assert_eq!(a.rows[0].kind, Some(kind), "{jbd2:?} in block {block}");
    }
}

/// The block was cut off its file while it was in flight: its home's owner need not be its own.
#[test]
fn a_data_copy_without_its_entry_is_of_no_file_that_is_known() {
    let map = map();
    let entry = RawProcess {
        origin: Origin::JOURNAL,
        jbd2: Jbd2::DATA_COPY,
        home_sector: 24.into(),
        tid: 9.into(),
        ..process(0, 48, BLOCK)
    };
    let a = attribute(&[write(0, 48, BLOCK)], vec![entry], vec![], Some(&map));
    let block = a.journal_block(&a.rows[0]).unwrap();
    assert_eq!(block.home_kind, Some(Kind::Regular));
    assert_eq!(block.home_file, FileId::NONE);
}

#[test]
fn a_data_copy_knows_its_file_by_its_entry() {
    let entry = RawProcess {
        origin: Origin::JOURNAL,
        jbd2: Jbd2::DATA_COPY,
        home_sector: 1000.into(),
        ..process(0, 48, BLOCK)
    };
    let a = attribute(
        &[write(0, 48, BLOCK)],
        vec![entry],
        vec![file(0, 48, BLOCK, "b-wal")],
        None,
    );
    let [row] = a.rows[..] else {
        panic!("{:?}", a.rows)
    };
    let home = a.file_of(a.journal_block(&row).unwrap().home_file).unwrap();
    assert_eq!(
        (home.inode, home.path.as_deref()),
        (Some(12), Some(&b"b-wal"[..]))
    );
}

/// On a mapped device, the probe knows only the place on that device.
#[test]
fn homes_on_a_mapped_device_are_brought_down() {
    let piece = |upper, sectors, lower| Piece {
        upper,
        sectors,
        lower,
    };
    let below = map().through(&[piece(0, 32, 2000), piece(32, 8000, 10_000)]);
    let entry = |home| RawProcess {
        origin: Origin::JOURNAL,
        jbd2: Jbd2::METADATA_COPY,
        home: Home::FILESYSTEM,
        home_sector: home,
        ..process(0, 10_016, BLOCK)
    };
    let home_of = |home: u64, map| {
        let entries = vec![entry(home.into())];
        let a = attribute(&[write(0, 10_016, BLOCK)], entries, vec![], map);
        let block = a.journal_block(&a.rows[0]).unwrap();
        (block.home_sector, block.home_kind)
    };
    let inode_table = Some(Kind::InodeTable);
    assert_eq!(home_of(8, Some(&below)), (Some(2008), inode_table));
    // Of a filesystem on several devices, the home is on another disk.
    let beside = map().through(&[piece(0, 32, ELSEWHERE), piece(32, 8000, 10_000)]);
    assert_eq!(
        home_of(8, Some(&beside)),
        (Some(ELSEWHERE + 8), inode_table)
    );
    // The place is on no part of this disk, and is unknown without a map.
    assert_eq!(home_of(9000, Some(&below)), (None, None));
    assert_eq!(home_of(8, None), (None, None));
    // An external journal's copies have their homes on this disk without a mapping.
    assert_eq!(home_of(8, Some(&map())), (Some(8), inode_table));
}

/// A copy of the same transaction in the snapshot's journal takes precedence over the map, which is newer, and over the
/// probe.
#[test]
fn a_copy_that_is_still_in_the_journal_tells_what_its_home_was() {
    let (map, freed) = (map(), 32);
    let journal: Journal = [(
        48,
        Copy {
            tid: 9,
            home_sector: freed,
            kind: Some(Kind::ExtentTree),
        },
    )]
    .into_iter()
    .collect();
    let home_of = |tid: u32, home: u64| {
        let entry = RawProcess {
            origin: Origin::JOURNAL,
            jbd2: Jbd2::METADATA_COPY,
            home_sector: home.into(),
            tid: tid.into(),
            ..process(0, 48, BLOCK)
        };
        let table = table(std::iter::once(record(entry.as_bytes(), b"")));
        let mut reader = TableReader::new(&table[..], Path::new("table"), false).unwrap();
        let attributor = Attributor::new(vec![&mut reader], Some(&map));
        let mut attributor = attributor.with_journal(&journal);
        let (_, rows) = attributor.push(&write(0, 48, BLOCK)).unwrap();
        let block = rows[0].journal.unwrap();
        (block.home_sector, block.home_kind)
    };
    let extents = Some(Kind::ExtentTree);
    assert_eq!(home_of(9, freed), (Some(freed), extents));
    assert_eq!(home_of(9, NONE), (Some(freed), extents));
    // The copy is another transaction's, or this transaction's with another answer.
    assert_eq!(home_of(8, 8), (Some(8), Some(Kind::InodeTable)));
    assert_eq!(home_of(8, freed), (Some(freed), Some(Kind::Free)));
    assert_eq!(home_of(8, NONE), (None, None));
}

#[test]
fn copies_in_one_bio_keep_their_homes() {
    let entries = (0..2).map(|n| RawProcess {
        origin: Origin::JOURNAL,
        jbd2: Jbd2::METADATA_COPY,
        home_sector: (8 + n * 8).into(),
        ..process(0, 48 + n * 8, BLOCK)
    });
    let map = map();
    let a = attribute(
        &[write(0, 48, 2 * BLOCK)],
        entries.collect(),
        vec![],
        Some(&map),
    );
    let homes: Vec<_> = a
        .rows
        .iter()
        .map(|row| a.journal_block(row).unwrap().home_kind.unwrap())
        .collect();
    assert_eq!(homes, [Kind::InodeTable, Kind::Directory]);
}

#[test]
fn a_bare_trace_is_cut_by_the_map() {
    let map = map();
    let a = attribute(&[write(0, 8, 13 * BLOCK)], vec![], vec![], Some(&map));
    let kinds: Vec<_> = a
        .rows
        .iter()
        .map(|r| (r.kind.unwrap(), r.bytes / BLOCK))
        .collect();
    assert_eq!(
        kinds,
        [
            (Kind::InodeTable, 1),
            (Kind::Directory, 1),
            (Kind::Regular, 1),
            (Kind::Free, 1),
            (Kind::Regular, 1),
            (Kind::JournalBlock, 2),
            (Kind::ExtentTree, 1),
            (Kind::Directory, 1),
            (Kind::Unmapped, 4),
        ]
    );
    let offsets: Vec<_> = a
        .rows
        .iter()
        .filter(|r| r.kind == Some(Kind::Regular))
        .map(|r| r.file_offset)
        .collect();
    assert_eq!(offsets, [Some(0), Some(4096)]);
}

#[test]
fn no_map_and_no_entries_is_unknown() {
    let a = attribute(&[write(0, 8, 2 * BLOCK)], vec![], vec![], None);
    let [row] = a.rows[..] else {
        panic!("{:?}", a.rows)
    };
    assert_eq!(
        (row.kind, row.class()),
        (Some(Kind::Unmapped), Some(Class::Unknown))
    );
}

#[test]
fn operations_without_data_are_apart() {
    use crate::blktrace::action::BLK_TC_DISCARD;
    let map = map();
    let discard = Completion {
        action: WRITE | BLK_TC_DISCARD,
        ..write(0, 24, 8 * BLOCK)
    };
    let flush = Completion {
        action: DEVICE_FLUSH,
        bytes: 0,
        ..write(1000, 0, 0)
    };
    let end = write(2000, 24, 0);
    // blktrace v7 has no word for it, only bi_opf has.
    let zeroes = write(3000, 24, BLOCK);
    let opf = RawProcess {
        opf: 9.into(),
        ..process(3000, 24, BLOCK)
    };
    let a = attribute(
        &[discard, flush, end, zeroes],
        vec![opf],
        vec![],
        Some(&map),
    );
    let ops: Vec<_> = a
        .rows
        .iter()
        .map(|row| (row.op, row.bytes, row.kind))
        .collect();
    assert_eq!(
        ops,
        [
            (Op::Discard, 8 * BLOCK, None),
            (Op::DeviceFlush, 0, None),
            (Op::Flush, 0, None),
            (Op::WriteZeroes, BLOCK, None),
        ]
    );
}
