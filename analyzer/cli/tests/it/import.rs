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
    tells_what_the_recording_does("ftrace-ext4.txt");
}

/// Events of f2fs with the path of what they write.
const F2FS: &str = "# tracer: nop
  app-71  (   70) [001] ..... 5.000001: f2fs_write_begin: dev = (8,0), ino = 9, pos = 4096, len = 4096
  app-71  (   70) [001] ..... 5.000002: f2fs_datawrite_start: entry_name /app/a.db-wal, offset 4096, bytes 4096, cmdline app, pid 70, i_size 0, ino 9
  app-71  (   70) [001] ..... 5.000003: f2fs_submit_page_write: dev = (8,0), ino = 9, page_index = 0x1, oldaddr = 0x0, newaddr = 0x200, rw = WRITE(S), type = WARM_DATA
  app-71  (   70) [001] ..... 5.000004: block_bio_queue: 8,0 WS 4096 + 8 [app]
  app-71  (   70) [001] ..... 5.000005: block_rq_issue: 8,0 WS 4096 () 4096 + 8 [app]
  <idle>-0 (-----) [000] ..... 5.000006: block_rq_complete: 8,0 WS () 4096 + 8 [0]
";

#[test]
fn a_path_that_events_tell_is_the_files() {
    let dir = tempfile::tempdir().unwrap();
    let [text, bundle] = ["t.txt", "x.most"].map(|name| dir.path().join(name));
    std::fs::write(&text, F2FS).unwrap();
    let [text, bundle] = [&text, &bundle].map(|path| path.to_str().unwrap());
    mostrace(&["import", text, "-o", bundle]);
    let args = ["analyze", bundle, "--by", "path,role", "--format", "csv"];
    let table = mostrace(&args);
    assert!(table.contains("\n/app/a.db-wal,wal,"), "{table}");
}

/// The same events, as data/perfetto.py writes them.
#[test]
fn perfetto_tells_what_a_recording_does() {
    tells_what_the_recording_does("perfetto-ext4.pftrace");
}

fn tells_what_the_recording_does(trace: &str) {
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("x.most");
    let bundle = bundle.to_str().unwrap();
    mostrace(&["import", &data(trace), "-o", bundle]);
    let total = json(&["analyze", bundle])["total"].clone();
    let of = |key: &str| total[key].as_u64().unwrap();
    assert_eq!([of("requests"), of("bytes")], [113, 508_928], "{total}");
    assert_eq!([of("writes"), of("write_bytes")], [48, 375_808], "{total}");
    assert_eq!([of("reads"), of("read_bytes")], [6, 133_120], "{total}");
    assert_eq!([of("discards"), of("discard_bytes")], [11, 56_744_960]);
    assert_eq!([of("flushes"), of("device_flushes")], [19, 29], "{total}");
    let written = |by: &str| -> Vec<(String, u64)> {
        let rows = json(&["analyze", bundle, "--by", by, "--where", "op = 'write'"]);
        let rows = rows.as_array().unwrap().iter();
        let known = rows
            .filter_map(|row| Some((row[by].as_str()?.to_owned(), row["write_bytes"].as_u64()?)));
        known.collect()
    };
    let expected = |of: &[(&str, u64)]| -> Vec<(String, u64)> {
        of.iter()
            .map(|(who, bytes)| ((*who).to_owned(), *bytes))
            .collect()
    };
    // The recording also has a block of the root directory, from its map.
    let files = [("13", 131_072), ("12", 106_496), ("14", 38_912)];
    assert_eq!(written("inode"), expected(&files));
    let processes = [
        ("dd:22025", 131_072),
        ("jbd2/loop1-8:21720", 91_136),
        ("mostrace:22028", 79_872),
        ("dd:22024", 65_536),
        ("sync:22033", 8_192),
    ];
    assert_eq!(written("process"), expected(&processes));
}
