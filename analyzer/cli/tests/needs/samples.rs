// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sample traces, compared with blkparse and with themselves.

use crate::run;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::process::Command;

use mostrace_bundle::blk_io_trace::{Decoded, decode};
use mostrace_bundle::{Bundle, archive, layout};
use mostrace_tables::analysis::{Analysis, Options};
use mostrace_tables::tables::for_the_answer;
use mostrace_trace::answer::Summing;
use mostrace_trace::causes::Sharing;
use mostrace_trace::reading;
use mostrace_trace::recording::Recording;
use run::{json, sample, succeeds};
use test_support::{Need, Suite, at_once, tests};

pub fn suite() -> Suite {
    at_once(tests![
        completions_equal_blkparse needs [Need::Tool("blkparse", "blktrace")],
        every_table_has_the_same_bytes,
        the_answer_sums_up_what_the_tables_do,
        a_deleted_journal_is_named_and_never_metadata,
        nothing_is_without_a_process,
        the_kinds_are_those_of_the_filesystem,
        homes_in_the_journal_are_those_that_were_seen,
        nearly_all_has_a_cause,
        a_request_is_forced_by_the_call_that_lasted_meanwhile,
        a_bundle_of_before_is_read_as_before,
        events_are_the_same_in_both_forms,
    ])
}

const SAMPLES: [&str; 7] = [
    "delete",
    "truncate",
    "persist",
    "wal",
    "f2fs-delete",
    "f2fs-wal",
    "fat32-delete",
];
/// The samples in DELETE mode.
const DELETE: [&str; 3] = ["delete", "f2fs-delete", "fat32-delete"];

/// The answer is summed up while a trace is read, without the rows that tables are made of.
fn the_answer_sums_up_what_the_tables_do() {
    let each = SAMPLES.iter().map(|name| vec![sample(name).into()]);
    let several = vec![sample("f2fs-wal").into(), sample("wal").into()];
    for paths in each.chain([several]) {
        for sharing in [Sharing::Equal, Sharing::First] {
            let options = Options {
                causes: Some(sharing),
                ..Options::default()
            };
            let rows = Analysis::open_with(&paths, &options, &|_| {}).unwrap();
            let recordings = Recording::open_all(&paths, false).unwrap();
            let mut summing = Summing::default();
            let read = reading::read(recordings, &options, &|_| {}, &mut summing).unwrap();
            let sums = summing.finish(&read.origins);
            assert!(sums.layers.total.write_bytes > 0 && sums.who.groups.len() > 1);
            assert_eq!(
                sums,
                for_the_answer(&rows.facts, None).unwrap(),
                "{paths:?}"
            );
            assert_eq!(read.databases, rows.databases);
            assert_eq!(read.all_notices(), rows.all_notices());
        }
    }
}

/// Returns a table as rows of column → value.
fn table(verb: &[&str], bundle: &str) -> Vec<HashMap<String, String>> {
    rows_of(&[verb, &[bundle]].concat())
}

fn rows_of(args: &[&str]) -> Vec<HashMap<String, String>> {
    let rows = json(&[args, &["--format", "json"]].concat());
    let rows: Vec<serde_json::Map<String, serde_json::Value>> =
        serde_json::from_value(rows).unwrap();
    let text = |v: serde_json::Value| match v {
        serde_json::Value::String(s) => s,
        serde_json::Value::Null => String::new(),
        other => other.to_string(),
    };
    rows.into_iter()
        .map(|row| row.into_iter().map(|(k, v)| (k, text(v))).collect())
        .collect()
}

fn number(row: &HashMap<String, String>, column: &str) -> u64 {
    row[column]
        .parse()
        .unwrap_or_else(|_| panic!("{column}: `{}`", row[column]))
}

/// One thread writes in these samples, one call after the other. So what a call forced is what was queued and completed while it
/// lasted, by the thread or by the journal's; and what was queued between two calls was forced by none. Only of the journal's own
/// superblock, which few commits write, it may be unknown.
fn a_request_is_forced_by_the_call_that_lasted_meanwhile() {
    for name in ["delete", "truncate", "persist", "wal"] {
        let path = sample(name);
        let sql = "SELECT call, pid, time_ns, duration_ns FROM calls WHERE call IN ('fsync', 'fdatasync', 'sync') AND error = 0";
        let mut calls: Vec<(u64, u64, String, u64)> = rows_of(&["query", &path, sql])
            .iter()
            .map(|call| {
                let end = number(call, "time_ns");
                let start = end - number(call, "duration_ns");
                (start, end, call["call"].clone(), number(call, "pid"))
            })
            .collect();
        calls.sort_unstable();
        let are_apart = calls.windows(2).all(|pair| pair[0].1 <= pair[1].0);
        assert!(are_apart, "{name}");
        let (mut forced, mut unknown) = (0, 0);
        for row in &table(&["events"], &path) {
            let is_made = row["op"] == "write" || row["op"] == "flush";
            if !is_made || row["q2c_ns"].is_empty() {
                continue;
            }
            let end = number(row, "time_ns");
            let queued = end - number(row, "q2c_ns");
            let at = calls.partition_point(|call| call.0 <= queued);
            let call = at.checked_sub(1).map(|at| &calls[at]);
            let call = call.filter(|call| call.1 >= end);
            let is_its = |pid: u64| number(row, "pid") == pid || row["comm"].starts_with("jbd2/");
            let told = ["forced_by", "forced_by_pid", "forced_by_ns"].map(|name| row[name].clone());
            match call.filter(|call| is_its(call.3)) {
                Some(_) if told[0].is_empty() => unknown += 1,
                Some((start, _, kind, pid)) => {
                    let call = [kind.clone(), pid.to_string(), start.to_string()];
                    assert_eq!(told, call, "{name}: {row:?}");
                    forced += 1;
                }
                None => assert_eq!(told[2], "", "{name}: {row:?}"),
            }
        }
        assert!(
            forced > 5_000 && unknown < forced / 500,
            "{name}: {forced}, {unknown}"
        );
    }
}

/// Returns blkparse's C lines of the same files: how often each (rwbs, sector, bytes) completed.
fn blkparse(bundle: &str) -> BTreeMap<(String, u64, u64), u32> {
    let dir = tempfile::tempdir().unwrap();
    let mut tar = Command::new("tar");
    succeeds(tar.args(["--zstd", "-xf", bundle, "-C"]).arg(dir.path()));
    let mut blkparse = Command::new("blkparse");
    blkparse.args(["-q", "-i", "trace", "-f", "%a %d %S %N\n"]);
    let out = succeeds(blkparse.current_dir(dir.path())).out;
    let mut counts = BTreeMap::new();
    for line in out.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if let ["C", rwbs, sector, bytes] = fields[..] {
            let key = (
                rwbs.to_owned(),
                sector.parse().unwrap(),
                bytes.parse().unwrap(),
            );
            *counts.entry(key).or_insert(0) += 1;
        }
    }
    counts
}

fn completions_equal_blkparse() {
    for name in SAMPLES {
        let path = sample(name);
        let truth = blkparse(&path);
        assert!(truth.values().sum::<u32>() > 3000, "{name}");
        let mut completions: BTreeMap<u64, (String, u64, u64)> = BTreeMap::new();
        for row in table(&["events"], &path) {
            let (sector, bytes) = (number(&row, "sector"), number(&row, "bytes"));
            let c = completions
                .entry(number(&row, "completion"))
                .or_insert_with(|| (row["rwbs"].clone(), sector, 0));
            assert_eq!(
                c.1 + c.2 / 512,
                sector,
                "{name}: the parts of a completion follow one another"
            );
            c.2 += bytes;
        }
        let mut ours = BTreeMap::new();
        for c in completions.into_values() {
            *ours.entry(c).or_insert(0) += 1;
        }
        assert_eq!(ours, truth, "{name}");
    }
}

fn every_table_has_the_same_bytes() {
    for name in SAMPLES {
        let path = sample(name);
        let bytes: u64 = table(&["events"], &path)
            .iter()
            .map(|row| number(row, "bytes"))
            .sum();
        assert!(bytes > 10_000_000);
        for by in [
            "class",
            "kind",
            "role",
            "process",
            "file",
            "provenance",
            "pid",
            "rwbs",
            "cause_process",
            "cause_op",
            "cause_file",
            "cause_known",
        ] {
            let rows = table(&["analyze", "--by", by], &path);
            let sum: u64 = rows.iter().map(|row| number(row, "bytes")).sum();
            assert_eq!(sum, bytes, "{name} by {by}");
            let parts: u64 = rows
                .iter()
                .map(|row| number(row, "write_bytes") + number(row, "read_bytes"))
                .sum();
            assert_eq!(parts, bytes, "{name} by {by}: writes and reads");
        }
    }
}

/// The truth: 1,000 autocommitted inserts write the journal twice each (strace: its pages, then its header), so there are at
/// least 2,000 writes of a file that is gone at the snapshot.
fn a_deleted_journal_is_named_and_never_metadata() {
    for name in DELETE {
        the_journal_of(name);
    }
}

fn the_journal_of(name: &str) {
    let rows = table(&["events"], &sample(name));
    let journal: Vec<_> = rows
        .iter()
        .filter(|r| r["path"].ends_with("-journal") && !r["kind"].ends_with("_node"))
        // Flushes have an owner, but no class.
        .filter(|r| number(r, "bytes") > 0)
        .collect();
    let completions: std::collections::HashSet<_> =
        journal.iter().map(|r| &r["completion"]).collect();
    assert!(completions.len() >= 2000, "{name}: {}", completions.len());
    for row in &journal {
        let found = (&*row["path"], &*row["provenance"]);
        assert_eq!(found, ("/app/test.db-journal", "live"), "{name}");
        assert_eq!(
            (&*row["class"], &*row["role"]),
            ("data", "rollback_journal")
        );
    }
    // All writes of regular files are the database's or the journal's: none is misattributed.
    let data = rows.iter().filter(|r| r["kind"] == "regular");
    assert!(
        data.clone()
            .all(|r| ["db", "rollback_journal"].contains(&&*r["role"]))
    );
    // No page of a file appears as anything else.
    assert!(
        rows.iter()
            .filter(|r| r["origin"] == "file")
            .all(|r| r["class"] == "data")
    );
}

fn nothing_is_without_a_process() {
    for name in SAMPLES {
        let rows = table(&["events"], &sample(name));
        for row in rows.iter().filter(|r| number(r, "bytes") > 0) {
            assert_eq!(row["stage"], "queue", "{name}: {row:?}");
            assert!(!row["pid"].is_empty() && !row["comm"].is_empty());
            assert_ne!(row["class"], "unknown", "{name}: {row:?}");
        }
    }
}

/// Each filesystem's other writes: f2fs unlinks the journal with a checkpoint and syncs each file with a node; FAT has its
/// table and its directories.
fn the_kinds_are_those_of_the_filesystem() {
    for (name, kinds) in [
        (
            "f2fs-delete",
            &["checkpoint", "nat", "sit", "ssa", "hot_node", "fsync_node"][..],
        ),
        ("f2fs-wal", &["checkpoint", "fsync_node"]),
        ("fat32-delete", &["fat", "fsinfo", "directory"]),
    ] {
        let rows = table(&["analyze", "--by", "kind"], &sample(name));
        for kind in kinds {
            let row = rows.iter().find(|row| row["kind"] == *kind);
            let row = row.unwrap_or_else(|| panic!("{name}: no {kind}"));
            assert!(number(row, "write_bytes") > 0, "{name}: {kind}");
        }
    }
    let rows = table(&["events"], &sample("f2fs-delete"));
    let synced = rows
        .iter()
        .filter(|r| r["kind"] == "fsync_node" && r["path"] == "/app/test.db-journal");
    // There is one for each transaction: its journal was synced and then deleted.
    assert!(synced.count() >= 1000);
}

/// Compares the snapshot's journal with the probes: every copy that is still there has the home that was seen.
fn homes_in_the_journal_are_those_that_were_seen() {
    for name in ["delete", "truncate", "persist", "wal"] {
        let path = sample(name);
        let bundle = mostrace_bundle::Bundle::open(path.as_ref()).unwrap();
        let snapshot = bundle.snapshot().unwrap().unwrap();
        let image = mostrace_map::fs::Image::open(snapshot.path()).unwrap();
        let start = bundle.manifest().snapshot.as_ref().unwrap().start_sector;
        let state = mostrace_map::fs::State::Mounted;
        let map = mostrace_map::fs::build_by(state, &image, start, &|_| {}).unwrap();
        let journal = mostrace_map::fs::jbd2::Journal::read(&image, &map, start).unwrap();
        let copies: Vec<_> = table(&["events"], &path)
            .into_iter()
            .filter(|row| row["kind"] == "metadata_copy")
            .collect();
        let saved = |row: &HashMap<String, String>| {
            let copy = journal.copy(number(row, "sector"))?;
            (u64::from(copy.tid) == number(row, "jbd2_tid")).then_some(copy.home_sector)
        };
        let mut there = 0;
        for row in &copies {
            if let Some(home) = saved(row) {
                there += 1;
                assert_eq!(number(row, "home_sector"), home, "{name}: {row:?}");
            }
        }
        assert!(
            there * 3 > copies.len(),
            "{name}: {there} of {}",
            copies.len()
        );
    }
}

/// One process did everything, so the journals, the checkpoints and FAT's tables were caused by it. FAT writes a directory's
/// buffer by itself and leaves its page dirty: the next dirtier of that page is not seen.
fn nearly_all_has_a_cause() {
    for name in SAMPLES {
        let least = if name.starts_with("fat32") { 940 } else { 990 };
        let rows = table(&["analyze", "--by", "cause_process"], &sample(name));
        let bytes = |is: &dyn Fn(&str) -> bool| -> u64 {
            let of = rows.iter().filter(|row| is(&row["cause_process"]));
            of.map(|row| number(row, "write_bytes")).sum()
        };
        let all = bytes(&|_| true);
        let known = bytes(&|process| process.starts_with("mostrace:"));
        assert!(known * 1000 >= all * least, "{name}: {known} of {all}");
    }
    let rows = table(
        &["analyze", "--by", "kind,cause_op"],
        &sample("f2fs-delete"),
    );
    for (kind, operation) in [
        ("regular", "write"),
        ("checkpoint", "checkpoint"),
        ("fsync_node", "fsync"),
    ] {
        let of = rows.iter().filter(|row| row["kind"] == kind);
        let most = of.max_by_key(|row| number(row, "write_bytes")).unwrap();
        assert_eq!(most["cause_op"], operation, "{kind}");
    }
}

/// This sample is older: entries were made at insertion, and there were no dirtiers and causes. The expected figures are of
/// that time.
fn a_bundle_of_before_is_read_as_before() {
    let before = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/before/wal.most.tar.zst");
    let written = |by: &str| -> BTreeMap<String, u64> {
        let rows = table(&["analyze", "--by", by], before);
        let some = rows
            .iter()
            .map(|row| (row[by].clone(), number(row, "write_bytes")));
        some.filter(|(_, bytes)| *bytes > 0).collect()
    };
    let expect = |figures: &[(&str, u64)]| -> BTreeMap<String, u64> {
        let owned = figures
            .iter()
            .map(|(name, bytes)| ((*name).to_owned(), *bytes));
        owned.collect()
    };
    let classes = [
        ("journal", 19_046_400),
        ("data", 8_765_440),
        ("metadata", 32_768),
    ];
    assert_eq!(written("class"), expect(&classes));
    let roles = [
        ("", 19_091_456),
        ("wal", 8_577_024),
        ("db", 155_648),
        ("rollback_journal", 20_480),
    ];
    assert_eq!(written("role"), expect(&roles));
    assert_eq!(written("cause_known"), expect(&[("unknown", 27_844_608)]));
}

/// The events of a sample, put into the compact form, give the same answers, and blktrace's files again.
fn events_are_the_same_in_both_forms() {
    for name in SAMPLES {
        let unpacked = archive::unpack(Path::new(&sample(name))).unwrap();
        let folder = unpacked.dir.path();
        let answers = || {
            let bundle = folder.to_str().unwrap();
            [
                run::mostrace(&["analyze", bundle, "--full"]),
                run::mostrace(&["events", bundle, "--format", "csv"]),
                run::mostrace(&["export", bundle, "--format", "blkparse"]),
            ]
        };
        let before = answers();
        let mut events = Vec::new();
        for file in Bundle::open(folder).unwrap().event_files() {
            let plain = fs::read(file).unwrap();
            let cpu = layout::cpu_of(file.file_name().unwrap().to_str().unwrap()).unwrap();
            fs::remove_file(file).unwrap();
            let compact = run::compact(&plain);
            assert!(
                compact.len() < plain.len() * 2 / 3,
                "{name}: {}",
                compact.len()
            );
            fs::write(folder.join(layout::events_of_cpu(cpu)), compact).unwrap();
            events.push((cpu, plain));
        }
        forget_files(folder);
        assert_eq!(answers(), before, "{name}");
        let out = tempfile::tempdir().unwrap();
        run::export_blktrace(folder, &out.path().join("x"));
        for (cpu, plain) in events {
            let again = fs::read(out.path().join(format!("x.blktrace.{cpu}"))).unwrap();
            assert!(
                records_of(&again) == records_of(&plain),
                "{name}, CPU {cpu}"
            );
        }
    }
}

/// Takes the sizes of files out of a bundle's manifest.
fn forget_files(folder: &Path) {
    let path = folder.join(layout::MANIFEST);
    let mut manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    manifest.as_object_mut().unwrap().remove("files");
    fs::write(path, manifest.to_string()).unwrap();
}

/// Returns the records of a file of blktrace in the order of time; those of one moment stay as they are.
fn records_of(mut plain: &[u8]) -> Vec<(u64, &[u8])> {
    let mut records = Vec::new();
    while let Decoded::Record(event, len) = decode(plain) {
        let (record, rest) = plain.split_at(len);
        records.push((event.time_ns, record));
        plain = rest;
    }
    assert!(plain.is_empty());
    records.sort_by_key(|(time_ns, _)| *time_ns);
    records
}
