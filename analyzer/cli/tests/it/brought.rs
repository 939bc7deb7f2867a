// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files as people bring them: what `blkparse -d` wrote, the files of one trace, results of one row.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

fn mostrace(args: &[&str], paths: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mostrace"))
        .args(args)
        .args(paths)
        .output()
        .unwrap()
}

fn said(args: &[&str], paths: &[&Path]) -> String {
    let out = mostrace(args, paths);
    assert!(out.status.success(), "{out:?}");
    String::from_utf8(out.stdout).unwrap()
}

/// The recording's one request, which blkparse shows as completed 90 µs after 1600000001 s.
const MOMENT: &str = "2020-09-13T12:26:41.000090Z";

fn query(path: &Path, sql: &str, format: &str) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_mostrace"))
        .arg("query")
        .arg(path)
        .args([sql, "--format", format])
        .output()
        .unwrap();
    assert!(out.status.success(), "{out:?}");
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn what_blkparse_d_wrote_keeps_names_and_clock() {
    for name in ["plain.blktrace.0", "blkparse-d.bin"] {
        let rows = query(&data(name), "SELECT time_utc, process FROM events", "csv");
        assert_eq!(rows.lines().count(), 2, "{name}: {rows}");
        assert!(
            rows.contains(MOMENT) && rows.contains("writer"),
            "{name}: {rows}"
        );
    }
}

#[test]
fn a_time_is_a_time_in_one_row_too() {
    let path = data("plain.blktrace.0");
    for sql in [
        "SELECT min(time_utc) AS t FROM events",
        "SELECT time_utc AS t FROM events",
    ] {
        assert_eq!(query(&path, sql, "csv"), format!("t\n{MOMENT}\n"), "{sql}");
        let json: serde_json::Value = serde_json::from_str(&query(&path, sql, "json")).unwrap();
        assert!(json.to_string().contains(MOMENT), "{sql}: {json}");
    }
}

/// The image of another filesystem, or of the recorded one with another size, is said; debugfs changes the superblock.
#[test]
fn an_image_that_is_not_the_recorded_one_is_said() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample-traces/wal.most.tar.zst");
    let bundle = mostrace_bundle::Bundle::open(&sample).unwrap();
    let snapshot = bundle.snapshot().unwrap().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    let with = |change: &str| {
        fs::copy(snapshot.path(), &image).unwrap();
        if !change.is_empty() {
            let mut debugfs = Command::new("debugfs");
            let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
            debugfs
                .env("PATH", path)
                .args(["-w", "-R", change])
                .arg(&image);
            assert!(debugfs.output().unwrap().status.success());
        }
        said(&["analyze", "--full", "--image"], &[&image, &sample])
    };
    assert!(!with("").contains("names may be wrong"));
    let other = with("set_super_value uuid random");
    assert!(
        other.contains("this is another filesystem than the recorded one"),
        "{other}"
    );
    let superblock = fs::read(snapshot.path()).unwrap();
    let number = |at: usize| {
        u64::from(u32::from_le_bytes(
            superblock[1024 + at..][..4].try_into().unwrap(),
        ))
    };
    let (blocks, block) = (number(4), 1024 << number(24));
    let smaller = with(&format!("set_super_value blocks_count {}", blocks - 8));
    let line = format!(
        "the filesystem has {} bytes, and had {} in the recording",
        (blocks - 8) * block,
        blocks * block
    );
    assert!(smaller.contains(&line), "{smaller}");
}

/// A recording is known by its bytes, whatever its name is.
#[test]
fn a_recording_may_have_any_name() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample-traces/wal.most.tar.zst");
    let expected = said(&["analyze", "--by", "role", "--format", "csv"], &[&sample]);
    let dir = tempfile::tempdir().unwrap();
    let packed = fs::read(&sample).unwrap();
    let tar = zstd::decode_all(&packed[..]).unwrap();
    for (name, bytes) in [
        ("d.most", &packed),
        ("d", &packed),
        ("d.tar", &tar),
        ("d.blktrace.0", &packed),
    ] {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        let found = said(&["analyze", "--by", "role", "--format", "csv"], &[&path]);
        assert_eq!(found, expected, "{name}");
        assert!(!said(&["map"], &[&path]).is_empty(), "{name}");
    }
}

#[test]
fn the_files_of_a_trace_are_one_trace() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::copy(
        data("../../../trace/tests/data/ext4-fsync.blktrace.0"),
        at("x.blktrace.0"),
    )
    .unwrap();
    fs::copy(
        data("../../../trace/tests/data/ext4-fsync.blktrace.1"),
        at("x.blktrace.1"),
    )
    .unwrap();
    let bytes = |paths: &[&Path]| {
        said(
            &["analyze", "--no-map", "--by", "op", "--format", "csv"],
            paths,
        )
    };
    let once = bytes(&[&at("x")]);
    assert_eq!(bytes(&[&at("x.blktrace.0"), &at("x.blktrace.1")]), once);
    assert_eq!(bytes(&[&at("x"), &at("x.blktrace.1")]), once);
    assert_eq!(bytes(&[&at("x.blktrace.*")]), once);
}

#[test]
fn several_disks_in_a_trace_are_said() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("both");
    let mut bytes = fs::read(data("plain.blktrace.0")).unwrap();
    let alone = said(&["analyze", "--no-map"], &[&data("plain.blktrace.0")]);
    assert!(!alone.contains("several disks"), "{alone}");
    // The same events of another disk: only the minor number differs. A record has its device in bytes 36 to 39.
    let mut other = bytes.clone();
    let mut at = 0;
    while at < other.len() {
        let pdu = u16::from_le_bytes([other[at + 46], other[at + 47]]);
        other[at + 36] = 16;
        at += 48 + usize::from(pdu);
    }
    bytes.extend(other);
    fs::write(&path, bytes).unwrap();
    let text = said(&["analyze", "--no-map"], &[&path]);
    assert!(
        text.contains("several disks, which are added up (8:0, 8:16): --by device"),
        "{text}"
    );
}
