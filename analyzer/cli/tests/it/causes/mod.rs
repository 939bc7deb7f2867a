// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes: bundles made by hand, whose causes are known.

mod changes;
mod databases;
mod forced;
mod random;

use crate::run;
use crate::scene;

use std::collections::BTreeMap;

use mostrace_bundle::entry::{CallKind, Jbd2, NONE, Origin, call_flags};
use proptest::prelude::*;
use run::{json, mostrace, program, say};
use scene::{
    CREATE, CallOf, DEVICE, HandleOf, JBD2, KWORKER, READ, SQLITE, SYNC, Scene, Thread, WRITE,
    saved,
};
use serde_json::Value;

const OTHER: Thread = Thread::new(201, 200, "other");

const UNLINK: HandleOf = HandleOf {
    function: "__ext4_unlink",
    call: CallKind::Unlink,
    ..CREATE
};
const FLUSHER: HandleOf = HandleOf {
    function: "ext4_do_writepages",
    call: CallKind::Other,
    ..CREATE.by(KWORKER)
};

const FSYNC: CallOf = CallOf {
    thread: SQLITE,
    kind: CallKind::Fsync,
    inode: 12,
    offset: NONE,
    bytes: 0,
    first_bytes: None,
    lasted_us: 100,
};

fn run(scene: &Scene, verb: &[&str]) -> Vec<Value> {
    let (_tmp, path) = saved(scene);
    let args = [verb, &[&path, "--json"]].concat();
    json(&args).as_array().unwrap().clone()
}

/// Returns kind, cause's comm, operation, inode, certainty and number of causers of the rows that were written.
fn written(scene: &Scene, more: &[&str]) -> Vec<String> {
    let events = [&["events", "--where", "op = 'write'"], more].concat();
    let columns = [
        "kind",
        "cause_comm",
        "cause_op",
        "cause_inode",
        "cause_known",
        "causes",
    ];
    let word = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let line = |row: &Value| columns.map(|column| word(&row[column])).join(" ");
    run(scene, &events).iter().map(line).collect()
}

/// Returns bytes by the values of a column.
fn bytes_by(scene: &Scene, column: &str, more: &[&str]) -> BTreeMap<String, u64> {
    let rows = run(scene, &[&["analyze", "--by", column], more].concat());
    let name = |row: &Value| row[column].as_str().unwrap_or("-").to_owned();
    rows.iter()
        .map(|row| (name(row), row["bytes"].as_u64().unwrap()))
        .collect()
}

#[test]
fn a_copy_is_its_handles_and_a_descriptor_everybodys_in_proportion() {
    let mut s = Scene::begun();
    s.handle(CREATE, &[8, 16, 24]);
    let unlink = HandleOf {
        inode: 13,
        ..UNLINK.by(OTHER)
    };
    s.handle(unlink, &[32]);
    s.commit(2000, &[8, 16, 24, 32, 40]);
    assert_eq!(
        written(&s, &[]),
        [
            "descriptor sqlite3 create 12 proportional 2",
            "metadata_copy sqlite3 create 12 exact 1",
            "metadata_copy sqlite3 create 12 exact 1",
            "metadata_copy sqlite3 create 12 exact 1",
            "metadata_copy other unlink 13 exact 1",
            // No handle was seen to dirty this one.
            "metadata_copy - - - unknown 0",
            "commit sqlite3 create 12 proportional 2",
        ]
    );
    let by = bytes_by(&s, "cause_process", &[]);
    let expected = [
        ("-", 4096),
        ("other:200", 4096 + 2 * 1024),
        ("sqlite3:100", 3 * 4096 + 2 * 3072),
    ];
    assert_eq!(
        by,
        expected
            .map(|(name, bytes)| (name.to_owned(), bytes))
            .into()
    );
}

/// A part's own sectors at home are nobody's block, and before its last part a commit has not ended its transaction.
#[test]
fn a_copy_and_a_commit_in_parts_are_judged_as_one_block() {
    let mut s = Scene::begun();
    s.handle(CREATE, &[8]);
    for (sector, jbd2, home) in [(2000, Jbd2::METADATA_COPY, 8), (2008, Jbd2::COMMIT, NONE)] {
        s.halved(WRITE | SYNC, sector, 4096, JBD2);
        s.journal(sector, 4096, JBD2, Origin::JOURNAL, jbd2, home);
    }
    let copy = "metadata_copy sqlite3 create 12 exact 1";
    let commit = "commit sqlite3 create 12 exact 1";
    assert_eq!(written(&s, &[]), [copy, copy, commit, commit]);
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
}

/// Two journals number their transactions alike, and their blocks do not name the journal: a copy is known by its home, other
/// blocks by the copies near them.
#[test]
fn the_blocks_of_two_journals_are_told_apart() {
    let elsewhere = HandleOf {
        s_dev: DEVICE + 1,
        ..CREATE.by(OTHER)
    };
    let mut s = Scene::begun();
    s.tid -= 1;
    s.handle(elsewhere, &[]);
    s.tid += 1;
    for homes in [[8, 1 << 20], [16, 2 << 20]] {
        s.handle(CREATE, &homes[..1]);
        s.handle(elsewhere, &homes[1..]);
        s.commit(2000, &homes[..1]);
        s.tid -= 1;
        s.commit(5 << 20, &homes[1..]);
    }
    assert_eq!(
        written(&s, &[]),
        [
            "descriptor - - - unknown 0",
            "metadata_copy sqlite3 create 12 exact 1",
            "commit sqlite3 create 12 exact 1",
            "descriptor - - - unknown 0",
            "metadata_copy other create 12 exact 1",
            "commit other create 12 exact 1",
            "descriptor sqlite3 create 12 exact 1",
            "metadata_copy sqlite3 create 12 exact 1",
            "commit sqlite3 create 12 exact 1",
            "descriptor other create 12 exact 1",
            "metadata_copy other create 12 exact 1",
            "commit other create 12 exact 1",
        ]
    );
}

#[test]
fn of_a_transaction_that_may_have_begun_before_the_recording_only_what_was_seen_is_known() {
    let mut s = Scene::new();
    s.handle(CREATE, &[8]);
    s.commit(2000, &[8]);
    assert_eq!(
        written(&s, &[]),
        [
            "descriptor - - - unknown 0",
            "metadata_copy sqlite3 create 12 first 1",
            "commit - - - unknown 0",
        ]
    );
}

#[test]
fn a_flusher_allocates_for_who_wrote_the_pages() {
    let mut s = Scene::begun();
    s.handle(FLUSHER, &[8]);
    s.owned(WRITE, 800, 4096, KWORKER, Origin::FILE);
    s.file(800, 4096, 12, 0, b"a.db");
    s.dirtier(800, 4096, OTHER);
    s.commit(2000, &[8]);
    assert_eq!(
        written(&s, &[]),
        [
            "regular other write 12 first 1",
            "descriptor other allocate 12 exact 1",
            "metadata_copy other allocate 12 exact 1",
            "commit other allocate 12 exact 1",
        ]
    );
    // The flusher is not the cause of pages whose cause is unknown.
    let mut s = Scene::begun();
    s.handle(FLUSHER, &[8]);
    s.commit(2000, &[8]);
    assert_eq!(written(&s, &[])[1], "metadata_copy - - - unknown 0");
}

#[test]
fn an_eviction_is_whose_unlink_it_was() {
    let mut s = Scene::begun();
    s.call(CallOf {
        kind: CallKind::Unlink,
        ..FSYNC.by(OTHER)
    });
    let evict = HandleOf {
        function: "ext4_evict_inode",
        call: CallKind::Close,
        ..CREATE
    };
    s.handle(evict, &[8]);
    s.handle(HandleOf { inode: 13, ..evict }, &[16]);
    s.handle(
        HandleOf {
            inode: 14,
            ..evict.by(KWORKER)
        },
        &[24],
    );
    s.commit(2000, &[8, 16, 24]);
    assert_eq!(
        written(&s, &[])[1..4],
        [
            "metadata_copy other unlink 12 exact 1",
            "metadata_copy - - - unknown 0",
            "metadata_copy - - - unknown 0",
        ]
    );
}

#[test]
fn of_handles_that_overlapped_it_is_one_of_a_set() {
    let overlapping = HandleOf {
        overlaps: true,
        lasted_us: 5000,
        ..CREATE
    };
    let others = overlapping.by(OTHER);
    let mut s = Scene::begun();
    s.handle(overlapping, &[8]);
    s.handle(others, &[16]);
    // This handle was the first to modify nothing, so it cannot be meant.
    let third = Thread::new(301, 301, "third");
    s.handle(overlapping.by(third), &[]);
    s.commit(2000, &[8, 16]);
    assert_eq!(
        written(&s, &[])[1..3],
        [
            "metadata_copy sqlite3 create 12 set 2",
            "metadata_copy other create 12 set 2",
        ]
    );
    let by = bytes_by(
        &s,
        "cause_comm",
        &["--where", "kind = 'metadata_copy'", "--share", "equal"],
    );
    assert_eq!(
        by,
        [("other".to_owned(), 4096), ("sqlite3".to_owned(), 4096)].into()
    );
}

#[test]
fn a_block_written_home_is_who_changed_it_first_or_all_theirs() {
    let mut s = Scene::begun();
    s.handle(CREATE, &[8]);
    s.commit(2000, &[8]);
    s.handle(UNLINK.by(OTHER), &[8, 16]);
    s.commit(2100, &[8, 16]);
    let home = |s: &mut Scene| {
        s.owned(WRITE, 8, 8192, KWORKER, Origin::BDEV);
    };
    home(&mut s);
    // Nobody has changed it since.
    home(&mut s);
    let only = ["--where", "origin = 'bdev'"];
    assert_eq!(
        written(&s, &[])[7..],
        [
            "unmapped other unlink 12 shared 2",
            "unmapped - - - unknown 0"
        ]
    );
    let first = bytes_by(
        &s,
        "cause_comm",
        &[&only[..], &["--share", "first"]].concat(),
    );
    let of = |name: &str, bytes: u64| (name.to_owned(), bytes);
    assert_eq!(
        first,
        [of("-", 8192), of("other", 4096), of("sqlite3", 4096)].into()
    );
    let equal = bytes_by(&s, "cause_comm", &only);
    assert_eq!(
        equal,
        [of("-", 8192), of("other", 4096 + 2048), of("sqlite3", 2048)].into()
    );
}

#[test]
fn without_its_tables_a_bundle_knows_who_dirtied_and_who_read() {
    let mut s = scene::transaction();
    s.owned(WRITE, 9000, 4096, KWORKER, Origin::FILE);
    s.file(9000, 4096, 13, 0, b"a.db");
    s.dirtier(9000, 4096, SQLITE);
    s.owned(WRITE | SYNC, 9100, 4096, OTHER, Origin::DIRECT);
    s.file(9100, 4096, 13, 4096, b"a.db");
    s.owned(READ, 9100, 4096, KWORKER, Origin::FILE);
    let by = bytes_by(&s, "cause_op", &["--where", "cause_known = 'exact'"]);
    assert_eq!(
        by,
        [("read".to_owned(), 16384), ("write".to_owned(), 4096)].into()
    );
    let all = bytes_by(&s, "cause_known", &[]);
    let unknown = 8192 + 12288 + 4096 + 4096 + 4096;
    assert_eq!(
        all,
        [
            ("exact".to_owned(), 16384 + 4096),
            ("first".to_owned(), 4096),
            ("unknown".to_owned(), unknown)
        ]
        .into()
    );
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
