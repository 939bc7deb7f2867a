// SPDX-License-Identifier: MIT OR Apache-2.0
//! Blocks of metadata that change owners.

use mostrace_bundle::entry::{RawFreed, TYPE_FREED};

use super::*;

const BLOCK: u32 = 4096;

/// Makes the entry of block `block`, freed at `t` µs by inode `ino` of generation 1.
fn freed(t: u64, block: u64, tid: u32, ino: u64) -> RawFreed {
    let head = RawHead {
        time_ns: (t * 1000).into(),
        ..head(TYPE_FREED, 0, block * 8, BLOCK)
    };
    RawFreed {
        head,
        ino: ino.into(),
        generation: 1.into(),
        s_dev: (7 << 20).into(),
        tid: tid.into(),
        ..RawFreed::default()
    }
}

/// Kind, inode, file offset and path of each write.
type Answer = (Option<Kind>, Option<u64>, Option<u64>, Option<String>);

fn answers(
    completions: &[Completion<'_>],
    processes: Vec<RawProcess>,
    given_back: &[RawFreed],
) -> Vec<Answer> {
    let map = map();
    let process_table = table(processes.iter().map(|p| record(p.as_bytes(), b"")));
    let freed_table = table(given_back.iter().map(|f| record(f.as_bytes(), b"")));
    let reader = |table| TableReader::new(table, Path::new("table"), false).unwrap();
    let (mut processes, mut freed) = (reader(&process_table[..]), reader(&freed_table[..]));
    let mut attributor = Attributor::new(vec![&mut processes], Some(&map))
        .with_freed(&mut freed)
        .unwrap();
    let mut attributed = Attributed::default();
    for completion in completions {
        let (request, rows) = attributor.push(completion).unwrap();
        attributed.push(request, rows);
    }
    attributed.names = attributor.finish(None).unwrap();
    let answer = |row: &Row| {
        let (kind, file) = match row.journal {
            Some(block) => (block.home_kind, block.home_file),
            None => (row.kind, row.file),
        };
        let of = attributed.file_of(file);
        let path = of.and_then(|file| file.path.as_deref().map(crate::text::escape));
        (kind, of.and_then(|file| file.inode), row.file_offset, path)
    };
    attributed.rows.iter().map(answer).collect()
}

fn home(t: u64, block: u64, contents: Contents) -> RawProcess {
    RawProcess {
        origin: Origin::BDEV,
        contents,
        ..process(t, block * 8, BLOCK)
    }
}

/// Makes the entry of a copy in the journal's second block.
fn copy(t: u64, block: u64, contents: Contents, tid: u32) -> RawProcess {
    RawProcess {
        origin: Origin::JOURNAL,
        jbd2: Jbd2::METADATA_COPY,
        home_sector: (block * 8).into(),
        tid: tid.into(),
        contents,
        ..process(t, 7 * 8, BLOCK)
    }
}

fn commit(t: u64, tid: u32) -> RawProcess {
    RawProcess {
        origin: Origin::JOURNAL,
        jbd2: Jbd2::COMMIT,
        tid: tid.into(),
        ..process(t, 6 * 8, BLOCK)
    }
}

/// A block's own bytes take precedence over the snapshot, which names the owner as long as both agree.
#[test]
fn a_block_is_what_its_bytes_say() {
    let at = |block, contents| {
        let entry = home(0, block, contents);
        answers(&[write(0, block * 8, BLOCK)], vec![entry], &[]).remove(0)
    };
    let root = || Some("/".to_owned());
    let directory = (Some(Kind::Directory), Some(2), Some(0), root());
    assert_eq!(at(2, Contents::DIRECTORY), directory);
    // The block has no mark: the recorder does not look, or the entries have no checksums.
    assert_eq!(at(2, Contents::UNKNOWN), directory);
    assert_eq!(at(2, Contents::OTHER), directory);
    let unknown = |kind| (Some(kind), None, None, None);
    assert_eq!(at(2, Contents::EXTENTS), unknown(Kind::ExtentTree));
    assert_eq!(at(2, Contents::XATTR), unknown(Kind::Xattr));
    assert_eq!(at(8, Contents::DIRECTORY), unknown(Kind::Directory));
    // The snapshot has a file there, or nothing.
    assert_eq!(at(3, Contents::DIRECTORY), unknown(Kind::Directory));
    assert_eq!(at(4, Contents::EXTENTS), unknown(Kind::ExtentTree));
    assert_eq!(at(3, Contents::OTHER), unknown(Kind::Free));
    // Blocks that never move are not judged by their bytes.
    assert_eq!(at(1, Contents::XATTR), unknown(Kind::InodeTable));
}

#[test]
fn a_block_that_was_given_back_was_its_givers() {
    let writes = [
        write(1000, 56, BLOCK),
        write(2000, 56, BLOCK),
        write(3000, 56, BLOCK),
    ];
    let of = |tid| copy(1000 * u64::from(tid - 4), 9, Contents::DIRECTORY, tid);
    // The copies of transactions 5 and 6 are what inode 12 freed in 6; that of 7 is the snapshot's.
    let found = answers(&writes, vec![of(5), of(6), of(7)], &[freed(1500, 9, 6, 12)]);
    let a_db = (Some(Kind::Directory), Some(12), None, Some("/a.db".into()));
    let sub = (Some(Kind::Directory), Some(13), None, Some("/sub".into()));
    assert_eq!(found, [a_db.clone(), a_db, sub]);
    // If a block had several owners, each write has its own; an inode that is gone has no name.
    let lives = [freed(1100, 9, 5, 12), freed(2100, 9, 6, 77)];
    let found = answers(&writes, vec![of(5), of(6), of(7)], &lives);
    let inodes: Vec<_> = found.iter().map(|answer| answer.1).collect();
    assert_eq!(inodes, [Some(12), Some(77), Some(13)]);
    assert_eq!(found[1].3, None);
}

/// Until its transaction is committed, a freed block has no other owner and may be written home; without a journal it is
/// free at once.
#[test]
fn a_block_is_given_back_with_the_commit() {
    let block = 9;
    let writes = [
        write(1000, block * 8, BLOCK),
        write(2000, 48, BLOCK),
        write(3000, block * 8, BLOCK),
    ];
    let entries = || {
        let contents = Contents::DIRECTORY;
        vec![
            home(1000, block, contents),
            commit(2000, 6),
            home(3000, block, contents),
        ]
    };
    let owners = |tid| {
        let found = answers(&writes, entries(), &[freed(500, block, tid, 12)]);
        [found[0].1, found[2].1]
    };
    assert_eq!(owners(6), [Some(12), Some(13)]);
    assert_eq!(owners(7), [Some(12), Some(12)]);
    assert_eq!(owners(0), [Some(13), Some(13)]);
}

/// One of the blocks is the journal's, whose place is fixed.
#[test]
fn what_is_given_back_in_one_is_found_block_by_block() {
    let mut run = freed(5000, 2, 0, 12);
    run.head.bytes = (4 * BLOCK).into();
    let entries = (1..7).map(|block| home(0, block, Contents::DIRECTORY));
    let writes: Vec<_> = (1..7).map(|block| write(0, block * 8, BLOCK)).collect();
    let found = answers(&writes, entries.collect(), &[run, freed(6000, 6, 0, 14)]);
    let inodes: Vec<_> = found.iter().map(|answer| answer.1).collect();
    let of_12 = Some(12);
    assert_eq!(inodes, [None, of_12, of_12, of_12, of_12, None]);
}

#[test]
fn the_kind_of_a_block_that_was_given_back_is_not_the_snapshots() {
    let entry = home(0, 9, Contents::OTHER);
    let found = answers(
        &[write(0, 72, BLOCK)],
        vec![entry],
        &[freed(5000, 9, 0, 12)],
    );
    let (kind, inode, ..) = &found[0];
    assert_eq!((kind, inode), (&Some(Kind::Free), &Some(12)));
}

/// Without a journal, a block is free when it is given back; with one, when the transaction's commit was queued.
#[test]
fn when_a_block_was_freed_last_is_known() {
    let freed_ns = |given_back: &[RawFreed], asked: &[(u64, u64)]| {
        let process_table = table([record(commit(2000, 6).as_bytes(), b"")].into_iter());
        let freed_table = table(given_back.iter().map(|f| record(f.as_bytes(), b"")));
        let reader = |table| TableReader::new(table, Path::new("table"), false).unwrap();
        let (mut processes, mut freed) = (reader(&process_table[..]), reader(&freed_table[..]));
        let attributor = Attributor::new(vec![&mut processes], None);
        let mut attributor = attributor.with_freed(&mut freed).unwrap();
        attributor.push(&write(2000, 48, BLOCK)).unwrap();
        let registry = attributor.registry();
        let each = asked.iter();
        each.map(|&(sector, time_ns)| registry.freed_ns(sector, time_ns))
            .collect::<Vec<_>>()
    };
    let at_once = [freed(500, 9, 0, 12), freed(900, 9, 0, 13)];
    let asked = [
        (72, 499_999),
        (72, 500_000),
        (72, 899_999),
        (72, 900_000),
        (79, 900_001),
        (71, 900_001),
        (80, 900_001),
    ];
    let (first, last) = (Some(500_000), Some(900_000));
    let expected = [None, first, first, last, last, None, None];
    assert_eq!(freed_ns(&at_once, &asked), expected);
    // The commit was queued at this time.
    let asked = [(72, 2_009_998), (72, 2_009_999)];
    let of = |tid| freed_ns(&[freed(500, 9, tid, 12)], &asked);
    assert_eq!(of(5), [None, first]);
    assert_eq!(of(6), [None, first]);
    assert_eq!(of(7), [None, None]);
}
