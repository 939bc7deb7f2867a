// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bundles with impossible contents: they are small, and reading them must not panic and must take little memory.

use crate::run;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use mostrace_bundle::archive;
use run::program;
use serde_json::Value;
use wait4::Wait4;

/// More memory than any verb may take for such a bundle.
const MEMORY: u64 = 1 << 30;

const VERBS: [&[&str]; 11] = [
    &["analyze"],
    &["analyze", "--tree"],
    &["report", "-o", "-"],
    &["check", "--max-bytes-per-transaction", "9"],
    &["export", "--format", "alibaba"],
    &["export", "--format", "msr"],
    &["export", "--format", "iolog"],
    &["export", "--format", "oracle-general"],
    &["export", "--format", "perfetto"],
    &["export", "--format", "folded"],
    &["events"],
];

/// Returns a sample as a folder that can be changed.
fn bundle(dir: &Path) -> PathBuf {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample-traces/wal.most.tar.zst");
    let unpacked = archive::unpack(&sample).expect("sample");
    let folder = dir.join("changed.most");
    fs::create_dir(&folder).expect("folder");
    for entry in fs::read_dir(unpacked.dir.path()).expect("files") {
        let entry = entry.expect("file");
        fs::copy(entry.path(), folder.join(entry.file_name())).expect("copy");
    }
    folder
}

fn change_manifest(folder: &Path, change: impl Fn(&mut Value)) {
    let path = folder.join("manifest.json");
    let mut manifest = serde_json::from_slice(&fs::read(&path).expect("manifest")).expect("JSON");
    change(&mut manifest);
    fs::write(&path, manifest.to_string()).expect("manifest");
}

/// Puts a number into every entry of a table, or every record of an event file.
fn change(path: &Path, header: usize, size: usize, places: &[usize], number: u64) {
    let mut bytes = fs::read(path).expect("table");
    for entry in bytes[header..].chunks_exact_mut(size) {
        for &at in places {
            entry[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
    }
    fs::write(path, bytes).expect("table");
}

/// Runs all verbs: each ends with 0 or with an error of at least one line, and stays within its memory.
fn all_verbs(folder: &Path) {
    for verb in VERBS {
        let said = folder.with_extension("said");
        let mut child = program()
            .arg(verb[0])
            .arg(folder)
            .args(&verb[1..])
            .stdout(Stdio::null())
            .stderr(fs::File::create(&said).expect("file"))
            .spawn()
            .expect("mostrace");
        let ended = child.wait4().expect("ended");
        let said = fs::read_to_string(&said).expect("messages");
        let ordinary = [Some(0), Some(1), Some(3)].contains(&ended.status.code());
        assert!(ordinary && !said.contains("panicked"), "{verb:?}: {said}");
        assert!(ended.rusage.maxrss < MEMORY, "{verb:?}: {:?}", ended.rusage);
    }
}

#[test]
fn numbers_of_the_manifest_may_be_any() {
    let dir = tempfile::tempdir().expect("folder");
    let folder = bundle(dir.path());
    change_manifest(&folder, |manifest| {
        for (part, names) in [
            (
                "payload",
                &["transactions", "payload_bytes", "file_bytes", "elapsed_ns"][..],
            ),
            ("clock", &["start_unix_ns"]),
        ] {
            for name in names {
                manifest[part][name] = u64::MAX.into();
            }
        }
    });
    all_verbs(&folder);
}

#[test]
fn calls_may_tell_of_any_length() {
    let dir = tempfile::tempdir().expect("folder");
    let folder = bundle(dir.path());
    let calls = folder.join("call.entries");
    // The length is at byte 56, and the call's return value from byte 64 on.
    change(&calls, 16, 120, &[56], 1 << 63);
    all_verbs(&folder);
    // There are 3,255 calls of 4 million pages each.
    change(&calls, 16, 120, &[56, 64], 16 << 30);
    change(&calls, 16, 120, &[48], 0);
    all_verbs(&folder);
}

/// Returns the events of 20 writes of so many bytes, eight sectors apart, from sector `first` on.
fn requests(first: u64, length: u32) -> Vec<u8> {
    // The records have no pdu. Each request has Q, D and C.
    let record = |nth: u64, action: u32| {
        let mut bytes = vec![];
        bytes.extend(0x6561_7407_u32.to_le_bytes());
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend((37_432_319_409_465 + nth * 1000).to_le_bytes());
        bytes.extend((first + nth / 3 * 8).to_le_bytes());
        for word in [length, 2 << 16 | action, 100, 7 << 20 | 1, 0, 0_u32] {
            bytes.extend(word.to_le_bytes());
        }
        bytes
    };
    (0..60)
        .flat_map(|nth| record(nth, [1, 7, 8][nth as usize % 3]))
        .collect()
}

#[test]
fn requests_longer_than_a_devices_are_no_list_of_blocks() {
    let dir = tempfile::tempdir().expect("folder");
    let folder = bundle(dir.path());
    let export = |length| {
        fs::write(folder.join("trace.blktrace.0"), requests(4096, length)).expect("events");
        fs::write(folder.join("trace.blktrace.1"), "").expect("events");
        let blocks = dir.path().join(format!("blocks-{length}"));
        let said = program()
            .args(["export", "--format", "oracle-general", "-o"])
            .args([&blocks, &folder])
            .output()
            .expect("mostrace");
        let lines = String::from_utf8_lossy(&said.stderr).into_owned();
        (said.status.code(), lines, fs::metadata(&blocks).ok())
    };
    let (status, _, blocks) = export(1 << 20);
    assert_eq!(
        (status, blocks.map(|file| file.len() >= 20 * 256 * 24)),
        (Some(0), Some(true))
    );
    let (status, said, blocks) = export(0xffff_f000);
    let error = format!("mostrace: {}: its ", folder.display());
    assert!(said.lines().any(|line| line.starts_with(&error)), "{said}");
    assert_eq!((status, blocks.is_none()), (Some(1), true));
}

#[test]
fn a_sector_may_be_past_every_device() {
    // The last request ends at the last sector that fits into a number, or beyond it.
    for first in [1 << 55, u64::MAX - 160, u64::MAX - 155] {
        let dir = tempfile::tempdir().expect("folder");
        let folder = bundle(dir.path());
        fs::write(folder.join("trace.blktrace.0"), requests(first, 4096)).expect("events");
        fs::write(folder.join("trace.blktrace.1"), "").expect("events");
        all_verbs(&folder);
    }
}
