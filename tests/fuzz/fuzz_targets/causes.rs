// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entries of every table, and events with few sectors, threads, inodes and transactions, so that they meet in every
//! way. The rows of a completion must add up to its bytes, and the shares of a row's causers to the row's; of passthrough
//! and of the device's own flushes no causer is known, and none has a share.
//!
//! A record is its table (one byte), the time since the record before (one byte), and the bytes behind the entry's
//! head.
#![no_main]

use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use libfuzzer_sys::fuzz_target;
use mostrace_bundle::table::{TableReader, header};
use mostrace_trace::attribute::{Attributor, Family, Op};
use mostrace_trace::blktrace::{Completions, Partial, Trace};
use mostrace_trace::causes::{CauseId, Causer, Share, Sharing, Tables};
use mostrace_trace::pipeline::Pipeline;
use mostrace_trace::transactions::databases;

/// The kind and size of the entries in each table; the first stands for events, the second kind 2 for names of the tree.
const EVENTS: usize = 0;
const TABLES: [(u16, usize); 12] = [
    (0, 48),
    (1, 88),
    (2, 88),
    (4, 72),
    (5, 120),
    (6, 48),
    (7, 120),
    (8, 56),
    (9, 72),
    (2, 88),
    (10, 40),
    (15, 56),
];
const HEAD: usize = 32;

type Reader = TableReader<Cursor<Vec<u8>>>;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, data)) = data.split_first() else {
        return;
    };
    let [events, mut tables @ ..] = files(data);
    tables
        .iter_mut()
        .for_each(|table| drop(table.splice(..0, header())));
    // The calls are read three times.
    let calls = tables[5].clone();
    let mut all_calls = reader(calls.clone());
    let [
        mut processes,
        mut names,
        mut dirtiers,
        mut handles,
        mut dirtied,
        mut called,
        mut freed,
        mut f2fs,
        mut tree,
        mut forks,
        mut comms,
    ] = tables.map(reader);
    let of_bios = vec![&mut processes, &mut names, &mut dirtiers];
    let mut attributor = Attributor::new(of_bios, None).of_filesystem(0);
    if choice & 1 == 0 {
        attributor = attributor.with_tree(&mut tree).expect("whole entries");
    }
    if choice & 2 == 0 {
        attributor = attributor.with_freed(&mut freed).expect("whole entries");
    }
    if choice & 8 == 0 {
        let family = Family::read(&mut forks, choice & 16 == 0).expect("whole entries");
        attributor = attributor.with_family(family);
    }
    if choice & 64 == 0 {
        attributor
            .learn_process_names(&mut comms)
            .expect("whole entries");
    }
    let tables = Tables {
        handles: Some(&mut handles),
        dirtied: Some(&mut dirtied),
        calls: Some((&mut called, &mut all_calls)),
        f2fs: Some(&mut f2fs),
    };
    let functions = ["ext4_write_begin", "ext4_unlink"].map(str::to_owned);
    let sharing = if choice & 4 == 0 {
        Sharing::First
    } else {
        Sharing::Equal
    };
    let causer = Causer::new(tables, &functions, sharing, choice & 32 == 0);
    let source: Box<dyn Read + Send> = Box::new(Cursor::new(events));
    let trace = Trace::from_sources(vec![(PathBuf::from("fuzz"), source)], Partial::Allowed);
    let mut pipeline = Pipeline::new(Completions::new(trace), attributor, Some(causer));
    while let Ok(Some(step)) = pipeline.next() {
        let bytes: u64 = step.rows.iter().map(|row| u64::from(row.bytes)).sum();
        assert_eq!(bytes, u64::from(step.request.bytes));
        let verdicts = step
            .verdicts
            .into_iter()
            .flat_map(|verdicts| verdicts.iter());
        for (row, (_, shares)) in step.rows.iter().zip(verdicts) {
            if matches!(row.op, Op::Other | Op::DeviceFlush) {
                let is_unknown =
                    |share: &Share| (share.cause, share.bytes) == (CauseId::UNKNOWN, 0);
                assert!(shares.iter().all(is_unknown), "{row:?} {shares:?}");
                continue;
            }
            let shared: u64 = shares.iter().map(|share| u64::from(share.bytes)).sum();
            assert_eq!(shared, u64::from(row.bytes));
        }
    }
    let names = pipeline.finish().expect("whole entries").names;
    databases(&mut reader(calls), &names, |_| {}).expect("whole entries");
});

fn reader(table: Vec<u8>) -> Reader {
    TableReader::new(Cursor::new(table), Path::new("fuzz"), false).expect("a header")
}

fn files(mut data: &[u8]) -> [Vec<u8>; TABLES.len()] {
    let mut files = [const { Vec::new() }; TABLES.len()];
    let mut time_ns = 1_000_000_000u64;
    while let [table, passed, rest @ ..] = data {
        let nth = usize::from(*table) % TABLES.len();
        let (kind, size) = TABLES[nth];
        time_ns += u64::from(*passed) << (passed & 31);
        let told = rest.len().min(size - 16);
        let (told, behind) = rest.split_at(told);
        let mut record = vec![0; size];
        record[16..16 + told.len()].copy_from_slice(told);
        match nth {
            EVENTS => event(&mut record, time_ns),
            _ => entry(&mut record, kind, time_ns),
        }
        files[nth].extend_from_slice(&record);
        data = behind;
    }
    files
}

/// Makes an event with few sectors and no payload.
fn event(record: &mut [u8], time_ns: u64) {
    record[..4].copy_from_slice(&0x6561_7407u32.to_le_bytes());
    record[8..16].copy_from_slice(&time_ns.to_le_bytes());
    record[17..24].fill(0);
    record[46..].fill(0);
}

fn entry(record: &mut [u8], kind: u16, time_ns: u64) {
    let size = u16::try_from(record.len()).expect("small");
    record[..2].copy_from_slice(&kind.to_le_bytes());
    record[2..4].copy_from_slice(&size.to_le_bytes());
    record[8..16].copy_from_slice(&time_ns.to_le_bytes());
    record[17..24].fill(0);
    if kind == 2 {
        // The name takes all the room that the entry has.
        record[HEAD + 36..HEAD + 38].copy_from_slice(&16u16.to_le_bytes());
    }
}
