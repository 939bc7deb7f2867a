// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entry tables: whole, cut at every byte, damaged, of another version.

use crate::common;

use std::path::Path;

use mostrace_bundle::entry::stack::{Frame, Place, StackRef};
use mostrace_bundle::entry::{CallKind, CgroupRef, NONE, Step, cp};
use mostrace_bundle::likes::{REACH, Short};
use mostrace_bundle::operation::OperationKind;
use mostrace_bundle::table::{
    HEADER_LEN, TableReader, TableWriter, VERSION_SHORT, header, header_of,
};
use mostrace_bundle::{Entry, Error};
use proptest::prelude::*;

/// Returns the byte offsets at which records begin, and the end of the last one.
fn ends(records: &[Vec<u8>]) -> Vec<usize> {
    let mut ends = vec![HEADER_LEN];
    ends.extend(records.iter().scan(HEADER_LEN, |at, record| {
        *at += record.len();
        Some(*at)
    }));
    ends
}

fn records() -> Vec<Vec<u8>> {
    let long = vec![b'n'; 255];
    vec![
        common::process(8),
        common::file(8, b""),
        common::file(8, b"12345678"),
        common::file(16, &long),
        common::process(24),
        common::dirtier(24),
        common::handle(),
        common::dirtied(32),
        common::call(),
        common::freed(40),
        common::f2fs(),
        common::fork(),
        common::served(),
        common::cgroup(),
        common::comm(),
        common::stack(),
        common::operation(),
    ]
}

fn table() -> Vec<u8> {
    [&header()[..], &records().concat()].concat()
}

fn read(bytes: &[u8], allow_cut: bool) -> (Vec<Entry>, Option<u64>, Option<Error>) {
    let mut reader = match TableReader::new(bytes, Path::new("t.entries"), allow_cut) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), None, Some(error)),
    };
    let (mut entries, mut error) = (Vec::new(), None);
    for entry in reader.by_ref() {
        match entry {
            Ok(entry) => entries.push(entry),
            Err(e) => error = Some(e),
        }
    }
    (entries, reader.cut_at(), error)
}

#[test]
fn a_killed_recorder_loses_what_it_has_not_flushed() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("t.entries");
    let mut table = TableWriter::create(&path).unwrap();
    table.push(&common::process(8)).unwrap();
    let on_disk = || std::fs::read(&path).unwrap();
    assert!(on_disk().is_empty());
    table.flush().unwrap();
    assert_eq!(on_disk(), [&header()[..], &common::process(8)].concat());
}

#[test]
fn records_come_back_as_they_were() {
    let (entries, cut, error) = read(&table(), false);
    assert!(error.is_none() && cut.is_none());
    let names: Vec<Option<usize>> = entries
        .iter()
        .map(|entry| match entry {
            Entry::Process(p) => {
                assert_eq!((p.pid.get(), &p.comm[..8]), (7, &b"sqlite3\0"[..]));
                None
            }
            Entry::File(f) => Some(f.name.len()),
            Entry::Dirtier(d) => {
                assert_eq!((d.pid.get(), d.tgid.get(), d.uid.get()), (9, 8, 5));
                assert_eq!((d.dirty_ns.get(), &d.comm[..7]), (800, &b"writer\0"[..]));
                None
            }
            Entry::Handle(h) => {
                assert_eq!((h.id.get(), h.tid.get(), h.dirtied.get()), (21, 40, 3));
                assert_eq!(CallKind::of(h.call.get()), CallKind::Unlink);
                None
            }
            Entry::Dirtied(d) => {
                assert_eq!((d.handle.get(), d.tid.get()), (21, 40));
                None
            }
            Entry::Call(c) => {
                assert_eq!((c.offset.get(), c.result.get()), (4096, 512));
                assert_eq!(CallKind::of(c.kind.get()), CallKind::Write);
                None
            }
            Entry::Freed(f) => {
                assert_eq!((f.ino.get(), f.generation.get(), f.tid.get()), (12, 4, 40));
                None
            }
            Entry::F2fs(f) => {
                assert_eq!(Step::from_repr(f.step.get()), Some(Step::Checkpoint));
                assert_eq!((f.reason.get(), f.pid.get()), (cp::SYNC, 9));
                None
            }
            Entry::Fork(f) => {
                assert_eq!((f.tgid.get(), f.parent.get()), (8, 7));
                None
            }
            Entry::Served(s) => {
                assert_eq!((s.pid.get(), s.for_pid.get()), (9, 8));
                assert_eq!((s.for_uid.get(), &s.for_comm[..3]), (10_001, &b"app"[..]));
                None
            }
            Entry::Cgroup(c, path) => {
                assert_eq!((c.tgid.get(), c.id.get()), (8, 77));
                let path = CgroupRef { raw: c, path }.whole_path();
                assert_eq!(path, b"/apps/app");
                None
            }
            Entry::Comm(c) => {
                assert_eq!((c.tgid.get(), &c.comm[..5]), (8, &b"java\0"[..]));
                None
            }
            Entry::Stack(raw, text) => {
                assert_eq!((raw.tgid.get(), raw.id.get()), (8, 99));
                let app = Place {
                    build_id: Some([0x0a, 0x1f].into()),
                    offset: Some(0x1189),
                    path: b"/a b/app"[..].into(),
                };
                let frames: Vec<Frame> = StackRef { raw, text }.frames().collect();
                let kernel = Frame::Kernel("ext4_dirty_inode".into());
                assert_eq!(
                    frames,
                    [kernel, Frame::User(app), Frame::User(Place::default())]
                );
                None
            }
            Entry::Operation(o) => {
                let kind = OperationKind::of(o.raw.kind.get());
                assert_eq!((kind, o.raw.result.get()), (OperationKind::Rename, -2));
                assert_eq!((&o.path[..], &o.other[..]), (&b"a/old"[..], &b"b/new"[..]));
                None
            }
        })
        .collect();
    let mut expected = vec![None; 17];
    expected[1..4].copy_from_slice(&[Some(0), Some(8), Some(255)]);
    assert_eq!(names, expected);
    let sectors: Vec<u64> = entries.iter().map(|e| e.head().sector.get()).collect();
    assert_eq!(
        sectors,
        [
            8, 8, 8, 16, 24, 24, NONE, 32, NONE, 40, NONE, NONE, NONE, NONE, NONE, NONE, NONE
        ]
    );
}

#[test]
fn a_table_cut_at_any_byte_gives_its_whole_records() {
    let whole = table();
    let ends = ends(&records());
    for len in 0..whole.len() {
        let at_boundary = ends.contains(&len);
        let before = ends
            .iter()
            .filter(|&&end| end <= len)
            .count()
            .saturating_sub(1);

        let (entries, cut, error) = read(&whole[..len], true);
        assert!(error.is_none(), "{len}: {error:?}");
        assert_eq!(entries.len(), before, "{len}");
        let start = if len < HEADER_LEN {
            0
        } else {
            ends[before] as u64
        };
        assert_eq!(cut, (!at_boundary).then_some(start), "{len}");

        let (entries, _, error) = read(&whole[..len], false);
        assert_eq!(entries.len(), before, "{len}");
        assert_eq!(error.is_none(), at_boundary, "{len}");
        if let Some(error) = error {
            let text = error.to_string();
            assert!(
                text.starts_with("t.entries: ") && text.contains("at byte "),
                "{text}"
            );
            assert!(!text.contains('\n'));
        }
    }
}

#[test]
fn other_tables_are_refused_for_what_they_are() {
    let with = |at: usize, bytes: &[u8]| {
        let mut table = table();
        table[at..at + bytes.len()].copy_from_slice(bytes);
        read(&table, true).2.expect("an error").to_string()
    };
    for (at, bytes, says) in [
        (0, &b"ELF"[..], "not an entry table"),
        (8, &[0x12, 0x34], "big-endian"),
        (8, &[0, 0], "byte-order mark"),
        (10, &[3, 0], "entry version 3; this program reads up to 2"),
        (
            HEADER_LEN,
            &[99, 0],
            "entry at byte 16: unknown entry type 99",
        ),
        (
            HEADER_LEN + 2,
            &[31, 0],
            "entry at byte 16: size 31 is less than a head",
        ),
        (
            HEADER_LEN + 2,
            &[40, 0],
            "entry at byte 16: shorter than a process entry",
        ),
        (
            HEADER_LEN + 88 + 72 + 80 + 328 + 88 + 2,
            &[64, 0],
            "entry at byte 672: shorter than a dirtier entry",
        ),
        (
            HEADER_LEN + 88 + 68,
            &[200, 0],
            "entry at byte 104: name longer than the record",
        ),
    ] {
        let text = with(at, bytes);
        assert!(
            text.starts_with("t.entries: ") && text.contains(says),
            "{text}"
        );
    }
}

/// The lines that are there are counted: a frame that is missing must not shift the kernel's frames to the program.
#[test]
fn a_stack_has_as_many_lines_as_frames() {
    let whole = common::stack();
    for (at, by) in [(44, 2), (46, 1), (46, 3)] {
        let mut record = whole.clone();
        record[at] = by;
        let said = Entry::decode(&record).unwrap_err();
        assert!(said.starts_with("3 lines of a stack with "), "{said}");
    }
}

/// Returns an entry with another time, sector, length, CPU and, if it is a file's, offset; a process's time is that of its submission.
fn varied(entry: &[u8], by: u8) -> Vec<u8> {
    let mut varied = entry.to_vec();
    varied[8..30].fill(by);
    let at = if entry[0] == 1 { 32 } else { 40 };
    varied[at..at + 8].fill(by);
    varied
}

/// Returns a table of short entries that are like the first one, with `between` in between.
fn with_short(like: &[u8], between: &[Vec<u8>], entries: &[Vec<u8>]) -> Vec<u8> {
    let back = between.len() as u64;
    let short: Vec<u8> = entries
        .iter()
        .flat_map(|entry| Short::of(entry, back).unwrap().record().to_vec())
        .collect();
    [
        &header_of(VERSION_SHORT)[..],
        like,
        &between.concat(),
        &short,
    ]
    .concat()
}

#[test]
fn short_entries_come_back_whole() {
    for like in [
        varied(&common::process(8), 1),
        varied(&common::file(8, b"a name"), 1),
    ] {
        for others in [0, 1, 63] {
            let between = vec![common::file(16, b"another"); others];
            let entries: Vec<_> = (2..6).map(|by| varied(&like, by)).collect();
            let table = with_short(&like, &between, &entries);
            let whole = [std::slice::from_ref(&like), &between[..], &entries].concat();
            let plain = [&header()[..], &whole.concat()].concat();
            assert!(table.len() < plain.len());
            let (read_short, cut, error) = read(&table, false);
            assert!(cut.is_none() && error.is_none(), "{error:?}");
            let shown = |entries: &[Entry]| format!("{entries:?}");
            assert_eq!(shown(&read_short), shown(&read(&plain, false).0));
        }
    }
    assert!(Short::of(&common::process(8), REACH).is_none());
    assert!(Short::of(&common::dirtier(8), 0).is_none());
}

/// An entry that is not wanted yet stays the next one, and counts once.
#[test]
fn short_entries_are_whole_if_they_are_asked_for_twice() {
    let like = varied(&common::process(8), 1);
    let entries = [varied(&like, 2), varied(&like, 3)];
    let table = with_short(&like, &[common::process(24)], &entries);
    let mut reader = TableReader::new(&table[..], Path::new("t.entries"), false).unwrap();
    let mut times = Vec::new();
    loop {
        assert!(reader.next_if(|_| false).unwrap().is_none());
        match reader.next_if(|_| true).unwrap() {
            Some(entry) => times.push(entry.head().time_ns.get().to_le_bytes()[0]),
            None => break,
        }
    }
    assert_eq!(times[0], 1);
    assert_eq!(times[2..], [2, 3]);
}

#[test]
fn short_entries_without_what_they_are_like_are_refused() {
    let process = common::process(8);
    let short = |entry: &[u8], back| Short::of(entry, back).unwrap().record().to_vec();
    let of_process = short(&process, 0);
    let mut long = short(&common::file(8, b"f"), 0);
    let table = |records: &[&[u8]]| [&header_of(VERSION_SHORT)[..], &records.concat()].concat();
    for (table, says) in [
        (table(&[&of_process]), "entry at byte 16: it is like none"),
        (
            table(&[&process, &short(&process, 1)]),
            "entry at byte 104: it is like none",
        ),
        (
            table(&[&process, &long]),
            "entry at byte 104: it is like an entry of type 1",
        ),
        (
            table(&[&common::file(8, b""), &of_process]),
            "entry at byte 88: it has no offset",
        ),
        (
            table(&[&common::dirtier(8), &of_process]),
            "entry at byte 88: it is like an entry of type 4",
        ),
        (
            [&header()[..], &process, &of_process].concat(),
            "entry at byte 104: unknown entry type 16",
        ),
    ] {
        let text = read(&table, true).2.expect("an error").to_string();
        assert!(text.ends_with(says), "{text}");
    }
    // However far back it says that it is, nothing else is returned.
    long[31] = 255;
    let wholes = vec![common::file(8, b"f"); 300].concat();
    let text = read(&table(&[&wholes, &long]), true).2.unwrap().to_string();
    assert!(text.ends_with("it is like none"), "{text}");
}

proptest! {
    #![proptest_config(test_support::property::config(file!(), 256))]

    #[test]
    fn flipped_bytes_of_short_entries_never_panic(
        flips in prop::collection::vec((0usize..2000, 1u8..), 1..8),
        allow_cut: bool,
    ) {
        let like = common::file(8, b"name");
        let entries: Vec<_> = (2..9).map(|by| varied(&like, by)).collect();
        let mut bytes = with_short(&like, &records(), &entries);
        for (at, flip) in flips {
            let at = at % bytes.len();
            bytes[at] ^= flip;
        }
        let (entries, _, _) = read(&bytes, allow_cut);
        prop_assert!(entries.len() <= bytes.len() / 32);
    }

    #[test]
    fn flipped_bytes_never_panic(
        flips in prop::collection::vec((0usize..2000, 1u8..), 1..8),
        len in 0usize..2000,
        allow_cut: bool,
    ) {
        let mut bytes = table();
        for (at, flip) in flips {
            let at = at % bytes.len();
            bytes[at] ^= flip;
        }
        bytes.truncate(len);
        let (entries, _, _) = read(&bytes, allow_cut);
        // No entry is shorter than a head.
        prop_assert!(entries.len() <= bytes.len() / 32);
    }

    #[test]
    fn anything_never_panics(bytes: Vec<u8>) {
        let _ = read(&bytes, true);
        let _ = Entry::decode(&bytes);
    }

    #[test]
    fn any_text_is_a_stack_or_none(text: Vec<u8>, kernel in 0u8..4, user in 0u8..4) {
        let mut record = common::stack();
        record.truncate(48);
        record.extend(&text);
        record.resize(record.len().next_multiple_of(8), 0);
        let size = u16::try_from(record.len()).unwrap();
        record[2..4].copy_from_slice(&size.to_le_bytes());
        (record[44], record[46]) = (kernel, user);
        let lines = text.iter().filter(|&&byte| byte == b'\n').count();
        match Entry::decode(&record) {
            Ok(Entry::Stack(raw, text)) => {
                let frames: Vec<Frame> = StackRef { raw: &raw, text: &text }.frames().collect();
                let kernels = frames.iter().filter(|f| matches!(f, Frame::Kernel(_))).count();
                prop_assert_eq!((frames.len(), kernels), (lines, kernel.into()));
            }
            Ok(other) => prop_assert!(false, "{other:?}"),
            Err(_) => prop_assert_ne!(lines, usize::from(kernel + user)),
        }
    }
}
