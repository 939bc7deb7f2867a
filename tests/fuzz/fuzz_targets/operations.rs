// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bundle with any operations, of few threads, files and paths. What is read of it is in order, ends after it begins, leaves
//! nothing out without a count, and has a start that can be deduced.
//!
//! An operation is its kind, its thread, its file, its flags, the time since the one before, and the lengths of its two names
//! (a byte each), then the names and what is told of the other fields.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mostrace_bundle::entry::Flags;
use mostrace_bundle::manifest::SCHEMA;
use mostrace_bundle::operation::{OperationRef, RawOperation};
use mostrace_bundle::table::header;
use mostrace_bundle::{Bundle, Manifest, layout};
use mostrace_replay::{Start, read_bundle};
use zerocopy::FromBytes;

/// A bundle without tables.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let folder = folder.expect("scratch folder").keep();
    let manifest = Manifest {
        schema: SCHEMA,
        ..Manifest::default()
    };
    let text = serde_json::to_string(&manifest).expect("in memory");
    fs::write(folder.join(layout::MANIFEST), text).expect("scratch file");
    folder
});

fuzz_target!(|data: &[u8]| {
    let (table, records) = table(data);
    fs::write(FOLDER.join(layout::OPERATION), table).expect("scratch file");
    let bundle = Bundle::open(&FOLDER).expect("a manifest");
    let recorded = read_bundle(&FOLDER, &bundle).expect("whole entries");
    let operations = &recorded.operations;
    assert!(operations.is_sorted_by_key(|operation| operation.begin_ns));
    assert!(
        operations
            .iter()
            .all(|operation| operation.begin_ns <= operation.end_ns)
    );
    let left_out: u64 = recorded.left_out.values().sum();
    assert_eq!(operations.len() as u64 + left_out, records);
    Start::of(&recorded);
});

/// Returns the table and the number of its records.
fn table(mut data: &[u8]) -> (Vec<u8>, u64) {
    let mut table = header().to_vec();
    let (mut records, mut time_ns) = (0, 1_000_000_000u64);
    while let [kind, thread, file, flags, passed, path, other, rest @ ..] = data {
        let (path, rest) = rest.split_at(usize::from(path & 31).min(rest.len()));
        let (other, rest) = rest.split_at(usize::from(other & 31).min(rest.len()));
        let told = rest.len().min(usize::from(passed >> 2));
        let (told, rest) = rest.split_at(told);
        let mut raw = [0; size_of::<RawOperation>()];
        let fields = raw.iter_mut().skip(32).zip(told);
        fields.for_each(|(to, from)| *to = *from);
        let mut raw = RawOperation::read_from_bytes(&raw).expect("its size");
        time_ns += u64::from(*passed) << (passed & 31);
        raw.head.time_ns = time_ns.into();
        raw.head.flags = Flags(*flags);
        raw.kind = u16::from(kind % 34).into();
        raw.pid = u32::from(thread & 3).into();
        raw.tgid = u32::from(thread >> 2 & 1).into();
        raw.file = u64::from(file & 7).into();
        raw.other_file = u64::from(file >> 3 & 7).into();
        let raw = &raw;
        let record = OperationRef { raw, path, other }.encode();
        table.extend_from_slice(&record.expect("its names are short"));
        records += 1;
        data = rest;
    }
    (table, records)
}
