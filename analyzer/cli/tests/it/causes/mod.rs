// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes: bundles made by hand, whose causes are known.

mod databases;
mod random;

use crate::run;
use crate::scene;

use std::collections::BTreeMap;

use mostrace_bundle::entry::{CallKind, Jbd2, NONE, Origin};
use proptest::prelude::*;
use run::{json, mostrace, program, say};
use scene::{
    CREATE, CallOf, FLUSHER, FSYNC, HandleOf, JBD2, KWORKER, OTHER, READ, SQLITE, SYNC, Scene,
    UNLINK, WRITE, saved,
};
use serde_json::Value;

fn run(scene: &Scene, verb: &[&str]) -> Vec<Value> {
    let (_tmp, path) = saved(scene);
    let args = [verb, &[&path, "--json"]].concat();
    json(&args).as_array().unwrap().clone()
}

/// Returns bytes by the values of a column.
fn bytes_by(scene: &Scene, column: &str, more: &[&str]) -> BTreeMap<String, u64> {
    let rows = run(scene, &[&["analyze", "--by", column], more].concat());
    let name = |row: &Value| row[column].as_str().unwrap_or("-").to_owned();
    rows.iter()
        .map(|row| (name(row), row["bytes"].as_u64().unwrap()))
        .collect()
}

/// Two operations share the descriptor, but both belong to one process; without the second, all of it is the first's.
#[test]
fn of_a_transaction_of_one_process_the_process_is_known() {
    let known = |s: &Scene| {
        let columns = "kind,cause_known,cause_process_known";
        let rows = run(s, &["events", "--columns", columns]);
        let words = |row: &Value| {
            format!(
                "{} {} {}",
                row["kind"], row["cause_known"], row["cause_process_known"]
            )
            .replace('"', "")
        };
        rows.iter()
            .map(words)
            .filter(|row| !row.starts_with("null"))
            .collect::<Vec<_>>()
    };
    let mut s = Scene::begun();
    s.handle(CREATE, &[8]);
    s.handle(UNLINK, &[16]);
    s.commit(2000, &[8, 16]);
    let copy = "metadata_copy exact exact";
    assert_eq!(
        known(&s),
        [
            "descriptor proportional exact",
            copy,
            copy,
            "commit proportional exact"
        ]
    );
    let mut s = Scene::begun();
    s.handle(CREATE, &[8]);
    s.handle(UNLINK.by(OTHER), &[16]);
    s.commit(2000, &[8, 16]);
    assert_eq!(known(&s)[0], "descriptor proportional proportional");
    let mut s = Scene::begun();
    s.handle(CREATE, &[8]);
    s.commit(2000, &[8]);
    assert_eq!(known(&s)[0], "descriptor exact exact");
    // Anybody who took part may have changed it later.
    let mut s = Scene::begun();
    s.tells_each = false;
    s.handle(CREATE, &[8]);
    s.handle(UNLINK.by(OTHER), &[16]);
    s.commit(2000, &[8, 16]);
    assert_eq!(known(&s)[1..3], ["metadata_copy first first"; 2]);
}

#[test]
fn a_row_says_what_forced_it_and_how_long_that_waited() {
    let mut s = Scene::begun();
    s.handle(CREATE, &[8]);
    s.commit(2000, &[8]);
    s.call(CallOf {
        lasted_us: 6000,
        ..FSYNC
    });
    let columns = "op,cause_process,cause_op,cause_inode,cause_latency_ns,forced_by,forced_by_pid";
    let rows = run(&s, &["events", "--columns", columns]);
    let expected = serde_json::json!({
        "op": "flush",
        "cause_process": "sqlite3:100",
        "cause_op": "fsync",
        "cause_inode": 12,
        "cause_latency_ns": 5_100_000,
        "forced_by": "fsync",
        "forced_by_pid": 101,
    });
    assert_eq!(rows.last(), Some(&expected));
}

#[test]
fn shares_are_divided_as_asked() {
    let mut s = shared_by_two();
    s.handle(UNLINK.by(OTHER), &[8]);
    s.commit(2100, &[8]);
    s.handle(CREATE, &[8]);
    s.commit(2200, &[8]);
    s.owned(WRITE, 8, 4096, KWORKER, Origin::BDEV);
    let by = |how: &str| {
        let only = [
            "--where",
            "origin = 'bdev' AND bytes = 4096",
            "--share",
            how,
        ];
        bytes_by(&s, "cause_comm", &only)
    };
    let of = |name: &str, bytes: u64| (name.to_owned(), bytes);
    assert_eq!(by("first"), [of("other", 4096)].into());
    assert_eq!(by("last"), [of("sqlite3", 4096)].into());
    assert_eq!(by("equal"), [of("other", 2048), of("sqlite3", 2048)].into());
}

#[test]
fn events_have_the_causes_side_by_side() {
    let rows = run(&scene::transaction(), &["events"]);
    let (_tmp, path) = saved(&scene::transaction());
    let text = mostrace(&["events", &path, "--format", "csv"]);
    let header = text.lines().next().unwrap();
    let causes = "cause_pid,cause_tgid,cause_uid,cause_comm,cause_op,cause_inode,cause_path,cause_known,causes,\
                  cause_latency_ns";
    assert!(header.contains(&format!(",{causes},")), "{header}");
    assert_eq!(rows.len() + 1, text.lines().count());
}

/// Two processes each changed one of two blocks that one request writes home.
fn shared_by_two() -> Scene {
    let mut s = Scene::begun();
    s.handle(CREATE, &[8]);
    s.handle(UNLINK.by(OTHER), &[16]);
    s.commit(2000, &[8, 16]);
    s.owned(WRITE, 8, 8192, KWORKER, Origin::BDEV);
    s
}

#[test]
fn a_condition_is_on_the_whole_row_also_where_it_is_cut_into_shares() {
    let s = shared_by_two();
    let sum = |column: &str, condition: &str| {
        let by = bytes_by(&s, column, &["--where", condition]);
        by.values().sum::<u64>()
    };
    for condition in [
        "bytes >= 8192",
        "bytes >= 8192 AND op = 'write'",
        "bytes = 4096",
    ] {
        let expected = sum("class", condition);
        assert!(expected > 0);
        for column in ["cause_comm", "cause_op", "cause_known"] {
            assert_eq!(sum(column, condition), expected, "{column}: {condition}");
        }
    }
    // Conditions on the cause apply to each share, whatever the grouping is.
    let theirs = "origin = 'bdev' AND bytes = 8192 AND cause_comm = 'other'";
    for column in ["class", "cause_comm"] {
        assert_eq!(sum(column, theirs), 4096, "{column}");
    }
}
