// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a table of entries. There must be no panic and at most one error, which names the file and the place; each entry
//! must be a whole record of its kind, and be the same when it is written again.
//!
//! The first byte chooses what the rest is: the bytes of a table, or records whose kinds and sizes are right. A record is its
//! kind (one byte), the length of what is told of it (one byte) and this. It follows the head's first four bytes, and the names
//! or lines behind it have lengths that fit, unless the kind's upper bits say otherwise. Random bytes alone hardly ever are a
//! second record.
#![no_main]

use std::io::{self, Read};
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use mostrace_bundle::entry::stack::Frame;
use mostrace_bundle::entry::{Entry, EntryRef};
use mostrace_bundle::table::{TableReader, VERSION, VERSION_SHORT, header_of};

/// The kind and the fixed size of each entry, and the offset of the length of what follows it.
const KINDS: [(u16, usize, Follows); 15] = [
    (1, 88, Follows::Nothing),
    (2, 72, Follows::Name(68)),
    (4, 72, Follows::Nothing),
    (5, 120, Follows::Nothing),
    (6, 48, Follows::Nothing),
    (7, 120, Follows::Nothing),
    (8, 56, Follows::Nothing),
    (9, 72, Follows::Nothing),
    (10, 40, Follows::Nothing),
    (11, 144, Follows::Names(140, 142)),
    (12, 48, Follows::Name(44)),
    (13, 48, Follows::Lines(44, 46)),
    (15, 56, Follows::Nothing),
    // The short forms of a process and of a file.
    (16, 32, Follows::Nothing),
    (16, 40, Follows::Nothing),
];

/// What follows the fixed part of a record, with the offsets of the fields that say how much.
#[derive(Clone, Copy)]
enum Follows {
    Nothing,
    Name(usize),
    Names(usize, usize),
    /// The lines of the kernel's and of the program's frames.
    Lines(usize, usize),
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, data)) = data.split_first() else {
        return;
    };
    let version = if choice & 16 == 0 {
        VERSION
    } else {
        VERSION_SHORT
    };
    let header: &[u8] = if choice & 1 == 0 {
        &header_of(version)
    } else {
        &[]
    };
    let records = match choice & 4 {
        0 => records(data),
        _ => data.to_vec(),
    };
    // Several of these are more than the reader's buffer.
    let times = if choice & 8 == 0 { 1 } else { 70 };
    let table = [header, &records.repeat(times)].concat();
    let path = Path::new("fuzz");
    let step = 1 + usize::from(choice >> 4) * 97;
    let mut reader = match TableReader::new(Pieces(&table, step), path, choice & 2 == 0) {
        Ok(reader) => reader,
        Err(error) => return assert!(error.to_string().starts_with("fuzz: ")),
    };
    let mut read = 0;
    loop {
        match reader.next_if(|_| true) {
            Ok(Some(entry)) => {
                read += 1;
                check(&entry);
            }
            Ok(None) => break,
            Err(error) => {
                assert!(error.to_string().starts_with("fuzz: entry at byte "));
                assert!(matches!(reader.next_if(|_| true), Ok(None)));
                break;
            }
        }
    }
    // No record is shorter than a head.
    assert!(read * 32 <= table.len());
});

/// A file that is read in pieces.
struct Pieces<'a>(&'a [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let most = buf.len().min(self.1);
        self.0.read(&mut buf[..most])
    }
}

fn check(entry: &EntryRef<'_>) {
    let size = usize::from(entry.head().size.get());
    match entry {
        EntryRef::File(file) => assert!(file.name.len() < size),
        EntryRef::Cgroup(cgroup) => {
            let path = cgroup.whole_path();
            assert!(path.contains(&b'/') && path.len() <= size + 3);
        }
        EntryRef::Stack(stack) => {
            let (kernel, user) = (stack.raw.kernel.get(), stack.raw.user.get());
            let frames = usize::from(kernel) + usize::from(user);
            assert_eq!(stack.frames().count(), frames);
            let places = stack.frames().filter_map(|frame| match frame {
                Frame::User(place) => Some(place),
                Frame::Kernel(_) => None,
            });
            places.for_each(|place| assert!(place.line().ends_with(b"\n")));
        }
        EntryRef::Operation(operation) => {
            let again = operation.encode().expect("it was in a record");
            let EntryRef::Operation(same) = EntryRef::decode(&again).expect("a record") else {
                panic!("another kind");
            };
            assert_eq!((same.path, same.other), (operation.path, operation.other));
        }
        _ => {}
    }
    let owned = Entry::from(*entry);
    assert_eq!(owned.head().time_ns, entry.head().time_ns);
}

fn records(mut data: &[u8]) -> Vec<u8> {
    let mut records = Vec::new();
    while let [kind, told, rest @ ..] = data {
        let (told, behind) = rest.split_at(usize::from(*told).min(rest.len()));
        let (number, fixed, follows) = KINDS[usize::from(kind & 15) % KINDS.len()];
        let mut record = vec![0; fixed.max(4 + told.len()).next_multiple_of(8)];
        if matches!(follows, Follows::Nothing) {
            record.truncate(fixed);
        }
        let room = record.len() - 4;
        record[4..4 + told.len().min(room)].copy_from_slice(&told[..told.len().min(room)]);
        if kind & 0xf0 == 0 {
            follows.mend(&mut record, fixed);
        }
        let size = u16::try_from(record.len()).expect("at most 264");
        record[..2].copy_from_slice(&number.to_le_bytes());
        record[2..4].copy_from_slice(&size.to_le_bytes());
        records.append(&mut record);
        data = behind;
    }
    records
}

impl Follows {
    /// Makes the lengths fit what there is.
    fn mend(self, record: &mut [u8], fixed: usize) {
        let behind = record.len() - fixed;
        let lines = record[fixed..]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count();
        let (first, second, all) = match self {
            Follows::Nothing => return,
            Follows::Name(at) => (at, None, behind),
            Follows::Names(path, other) => (path, Some(other), behind),
            Follows::Lines(kernel, user) => (kernel, Some(user), lines),
        };
        let part = usize::from(record[first]) % (all + 1);
        put16(record, first, part);
        if let Some(second) = second {
            put16(record, second, all - part);
        }
    }
}

fn put16(record: &mut [u8], at: usize, value: usize) {
    let value = u16::try_from(value).expect("at most 264");
    record[at..at + 2].copy_from_slice(&value.to_le_bytes());
}
