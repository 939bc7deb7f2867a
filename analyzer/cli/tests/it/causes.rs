// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes: bundles made by hand, whose causes are known.

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

/// Two threads change one block in a transaction. If each change has an entry, the block is shared; if only the first has one, the
/// second may have been made by anybody who took part.
#[test]
fn whoever_changes_a_block_after_the_first_is_not_left_out() {
    let unlink = UNLINK.by(OTHER);
    let copies = |s: &Scene| {
        let mut lines = written(s, &[]);
        lines.retain(|line| line.starts_with("metadata_copy"));
        lines
    };
    let mut s = Scene::begun();
    s.handle(CREATE, &[8]);
    s.handle(unlink, &[8, 16]);
    s.commit(2000, &[8, 16]);
    assert_eq!(
        copies(&s),
        [
            "metadata_copy sqlite3 create 12 shared 2",
            "metadata_copy other unlink 12 exact 1"
        ]
    );
    let mut s = Scene::begun();
    s.tells_each = false;
    s.handle(CREATE, &[8]);
    s.handle(unlink, &[16]);
    s.commit(2000, &[8, 16]);
    assert_eq!(
        copies(&s),
        [
            "metadata_copy sqlite3 create 12 first 1",
            "metadata_copy other unlink 12 first 1"
        ]
    );
    let known = run(
        &s,
        &[
            "events",
            "--columns",
            "cause_process_known",
            "--where",
            "kind = 'metadata_copy'",
        ],
    );
    assert!(
        known
            .iter()
            .all(|row| row["cause_process_known"] == "first")
    );
}

const WRITER: CallOf = CallOf {
    kind: CallKind::Write,
    offset: 0,
    bytes: 4096,
    lasted_us: 500,
    ..FSYNC
};
const THIRD: Thread = Thread::new(301, 301, "third");

/// Writes `bytes` of inode 12 from `offset` on out; the first page was made dirty `ago_us` µs before the request.
fn write_out(s: &mut Scene, offset: u64, bytes: u32, dirtier: Thread, ago_us: u64) {
    let sector = 8000 + offset / 512;
    s.owned(WRITE, sector, bytes, KWORKER, Origin::FILE);
    s.file(sector, bytes, 12, offset, b"a.db");
    s.dirtier_since(sector, bytes, dirtier, ago_us);
}

/// A large folio became dirty once, when the first of three tasks wrote to it; each wrote a block of its own.
#[test]
fn in_a_large_folio_each_block_is_its_writers() {
    let mut s = Scene::begun();
    for (thread, offset) in [(SQLITE, 0), (OTHER, 64 << 10), (THIRD, 128 << 10)] {
        s.call(CallOf {
            thread,
            offset,
            ..WRITER
        });
    }
    for (at, offset) in (0..).zip([0, 64 << 10, 128 << 10]) {
        write_out(&mut s, offset, 4096, SQLITE, 3100 + at * 1000);
    }
    assert_eq!(
        written(&s, &[]),
        [
            "regular sqlite3 write 12 exact 1",
            "regular other write 12 exact 1",
            "regular third write 12 exact 1"
        ]
    );
}

#[test]
fn a_block_that_two_calls_changed_is_shared_until_it_is_written() {
    let mut s = Scene::begun();
    let other = CallOf {
        offset: 1,
        bytes: 1,
        ..WRITER.by(OTHER)
    };
    s.call(WRITER);
    s.call(other);
    write_out(&mut s, 0, 4096, SQLITE, 2100);
    // Now only one of them changes it again.
    s.call(other);
    write_out(&mut s, 0, 4096, OTHER, 1100);
    assert_eq!(
        written(&s, &[]),
        [
            "regular sqlite3 write 12 shared 2",
            "regular other write 12 exact 1"
        ]
    );
    let by = bytes_by(&s, "cause_comm", &["--where", "cause_known = 'shared'"]);
    let half = |name: &str| (name.to_owned(), 2048);
    assert_eq!(by, [half("other"), half("sqlite3")].into());
}

/// A change that no call explains is not exact: a page dirtied by somebody without a call, a call in progress, lost entries.
/// Two bios of a flusher's share a request, and in between somebody changed the second one's page.
#[test]
fn each_bio_of_a_request_is_judged_at_its_own_q() {
    let mut s = Scene::begun();
    let whole = CallOf {
        bytes: 8192,
        ..WRITER
    };
    let second = CallOf {
        offset: 5000,
        bytes: 1,
        ..WRITER.by(OTHER)
    };
    s.call(whole);
    s.call(second);
    s.merged(WRITE, 8000, 4096, KWORKER, 1500);
    for at in 0..2 {
        let sector = 8000 + 8 * at;
        s.process(sector, 4096, KWORKER, Origin::FILE);
        s.file(sector, 4096, 12, 4096 * at, b"a.db");
        s.dirtier_since(sector, 4096, SQLITE, 2100);
    }
    assert_eq!(written(&s, &[]), ["regular sqlite3 write 12 shared 2"]);
    let by = bytes_by(&s, "cause_comm", &[]);
    let of = |name: &str, bytes: u64| (name.to_owned(), bytes);
    assert_eq!(by, [of("other", 2048), of("sqlite3", 4096 + 2048)].into());
}

#[test]
fn a_change_that_may_be_unseen_leaves_the_first() {
    let mut s = Scene::begun();
    s.call(WRITER);
    // Made dirty through a mapping, before the call.
    write_out(&mut s, 0, 4096, THIRD, 5000);
    // Nobody's call.
    write_out(&mut s, 8192, 4096, THIRD, 500);
    let lines = written(&s, &[]);
    assert_eq!(
        lines,
        [
            "regular third write 12 set 2",
            "regular third write 12 first 1"
        ]
    );
    let mut s = Scene::begun();
    s.call(WRITER);
    write_out(&mut s, 0, 4096, SQLITE, 1100);
    s.manifest.losses.insert("causes_ring".into(), 1);
    assert_eq!(written(&s, &[]), ["regular sqlite3 write 12 first 1"]);
    // A call of another task was in progress when the page was queued.
    let mut s = Scene::begun();
    s.call(WRITER);
    write_out(&mut s, 0, 4096, SQLITE, 1100);
    s.call(CallOf {
        lasted_us: 1500,
        ..WRITER.by(OTHER)
    });
    assert_eq!(written(&s, &[]), ["regular sqlite3 write 12 set 2"]);
}

/// However long a call lasts, what it changed before it returned may be its task's.
#[test]
fn a_call_that_lasts_a_minute_is_known_from_its_beginning() {
    let mut s = Scene::begun();
    s.call(WRITER);
    write_out(&mut s, 0, 4096, SQLITE, 1100);
    s.call(WRITER);
    write_out(&mut s, 0, 4096, SQLITE, 1100);
    // It began between the two, and its entry comes a minute later.
    s.wait(60_000_000);
    s.call(CallOf {
        lasted_us: 60_002_500,
        ..WRITER.by(OTHER)
    });
    assert_eq!(
        written(&s, &[]),
        [
            "regular sqlite3 write 12 exact 1",
            "regular sqlite3 write 12 set 2"
        ]
    );
}

/// The recording ended before the call did, so that nothing tells what it changed.
#[test]
fn after_a_call_that_never_returned_its_file_is_not_known_for_sure() {
    let mut s = Scene::begun();
    s.call(WRITER);
    write_out(&mut s, 0, 4096, SQLITE, 1100);
    s.call(WRITER);
    write_out(&mut s, 0, 4096, SQLITE, 1100);
    let in_progress = CallOf {
        offset: NONE,
        bytes: 0,
        lasted_us: 2500,
        ..WRITER.by(OTHER)
    };
    s.call(in_progress);
    s.flag_call(call_flags::OPEN_END);
    assert_eq!(
        written(&s, &[]),
        [
            "regular sqlite3 write 12 exact 1",
            "regular sqlite3 write 12 first 1"
        ]
    );
}

/// A request whose end nothing tells may change its range whenever it is written out.
#[test]
fn a_request_without_an_end_may_have_changed_every_later_block() {
    let mut s = Scene::begun();
    s.call(WRITER.by(OTHER));
    s.flag_call(call_flags::OPEN_END);
    for _ in 0..2 {
        s.call(WRITER);
        write_out(&mut s, 0, 4096, SQLITE, 1100);
    }
    assert_eq!(written(&s, &[]), ["regular sqlite3 write 12 set 2"; 2]);
}

/// More tasks are in calls at once than are looked at for a row.
#[test]
fn what_there_is_no_room_for_is_counted_and_not_exact() {
    let mut s = Scene::begun();
    s.call(WRITER);
    write_out(&mut s, 0, 4096, SQLITE, 1100);
    for pid in 300..400 {
        s.call(CallOf {
            offset: 8192,
            lasted_us: 500_000,
            ..WRITER.by(Thread::new(pid, pid, "crowd"))
        });
    }
    assert_eq!(written(&s, &[]), ["regular sqlite3 write 12 first 1"]);
    let (_tmp, path) = saved(&s);
    let said = say(program().args(["analyze", &path])).out;
    let line = "changes to contents: no room for 1; what they touched is not said to be exact";
    assert!(said.contains(line), "{said}");
}

#[test]
fn what_was_cut_off_is_nobodys_change_any_more() {
    let mut s = Scene::begun();
    s.call(WRITER);
    s.call(CallOf {
        kind: CallKind::Truncate,
        ..WRITER.by(OTHER)
    });
    s.call(WRITER.by(THIRD));
    write_out(&mut s, 0, 4096, THIRD, 1100);
    assert_eq!(written(&s, &[]), ["regular third write 12 exact 1"]);
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

/// Handles are read ahead of the requests, and of a fast journal those of hundreds of transactions: each is judged all the same.
#[test]
fn transactions_at_full_speed_are_all_judged() {
    let mut s = Scene::begun();
    s.step_us = 10;
    let transactions = 600;
    for at in 0..transactions {
        let thread = if at == 60 { OTHER } else { SQLITE };
        s.handle(CREATE.by(thread), &[8]);
        s.commit(2000 + 24 * at as u64, &[8]);
    }
    s.owned(WRITE, 8, 4096, KWORKER, Origin::BDEV);
    let rows = written(&s, &[]);
    let (home, journal) = rows.split_last().unwrap();
    assert_eq!(home, "unmapped sqlite3 create 12 shared 2");
    assert_eq!(journal.len(), 3 * transactions);
    assert!(journal.iter().all(|row| row.ends_with("exact 1")));
    let others: Vec<usize> = (0..journal.len())
        .filter(|&at| journal[at].contains(" other "))
        .collect();
    assert_eq!(others, [180, 181, 182]);
}

/// A task that took part in a transaction without being the first to change a block may have changed any: no other process has
/// the descriptor and the commit block for itself.
#[test]
fn a_process_that_changed_no_block_first_took_part() {
    let mut s = Scene::begun();
    s.handle(CREATE, &[8]);
    s.handle(UNLINK.by(OTHER), &[]);
    s.commit(2000, &[8]);
    let columns = "kind,cause_comm,cause_known,cause_process_known";
    let rows = run(
        &s,
        &["events", "--columns", columns, "--where", "op = 'write'"],
    );
    let words = |row: &Value| format!("{} {}", row["kind"], row["cause_process_known"]);
    let known: Vec<_> = rows.iter().map(|row| words(row).replace('"', "")).collect();
    let expected = [
        "descriptor proportional",
        "metadata_copy exact",
        "commit proportional",
    ];
    assert_eq!(known, expected);
}

#[test]
fn what_a_block_held_until_it_was_freed_is_not_in_it_any_more() {
    let third = Thread::new(301, 301, "third");
    let freed = |is_committed: bool| {
        let mut s = Scene::begun();
        s.handle(CREATE, &[8]);
        s.commit(2000, &[8]);
        s.handle(UNLINK.by(OTHER), &[16]);
        s.free(8, 12);
        if is_committed {
            s.commit(2100, &[16]);
            s.handle(CREATE.by(third), &[8]);
            s.commit(2200, &[8]);
        }
        s.owned(WRITE, 8, 4096, KWORKER, Origin::BDEV);
        written(&s, &[]).pop().unwrap()
    };
    assert_eq!(freed(true), "unmapped third create 12 exact 1");
    // Until then the journal may write it home as it was.
    assert_eq!(freed(false), "unmapped sqlite3 create 12 exact 1");
}

#[test]
fn a_commit_and_its_flush_are_the_first_fsyncs_that_waited() {
    let mut s = Scene::begun();
    s.handle(CREATE, &[8]);
    s.commit(2000, &[8]);
    // The first call is by a process that had no part in it, and the second began when the commit was in flight.
    s.call(CallOf {
        lasted_us: 9000,
        ..FSYNC.by(OTHER)
    });
    s.call(CallOf {
        lasted_us: 7000,
        ..FSYNC
    });
    s.call(CallOf {
        thread: Thread { pid: 102, ..SQLITE },
        lasted_us: 4000,
        ..FSYNC
    });
    let columns = "kind,op,cause_comm,cause_op,cause_inode,cause_known,cause_latency_ns";
    let rows = run(&s, &["events", "--columns", columns]);
    let flush = rows.last().unwrap();
    assert_eq!(
        (&flush["op"], &flush["cause_op"]),
        (&"flush".into(), &"fsync".into())
    );
    assert_eq!(
        (&flush["cause_comm"], &flush["cause_inode"]),
        (&"sqlite3".into(), &12.into())
    );
    // It was called 3 ms before the descriptor; the flush is queued 2 ms after that, and takes 0.1 ms.
    assert_eq!(flush["cause_latency_ns"], 5_100_000);
    assert_eq!(rows[rows.len() - 2]["cause_latency_ns"], 4_100_000);
}

/// Two calls of two kinds that waited for the whole commit may both have forced it; one of another process did not.
#[test]
fn a_commit_is_forced_by_the_call_that_waited_for_it() {
    let forced = |calls: &[CallOf]| {
        let mut s = Scene::begun();
        s.handle(CREATE, &[8]);
        s.commit(2000, &[8]);
        for call in calls {
            s.call(*call);
        }
        let columns = "op,forced_by,forced_by_pid,forced_by_ns,time_ns";
        let rows = run(&s, &["events", "--columns", columns]);
        let last = &rows[rows.len() - 4..];
        let told = |name: &str| {
            let all: Vec<_> = last.iter().map(|row| row[name].clone()).collect();
            assert!(all.iter().all(|one| *one == all[0]), "{name}: {all:?}");
            all[0].clone()
        };
        (told("forced_by"), told("forced_by_pid"))
    };
    let of = |kind, pid, lasted_us| CallOf {
        kind,
        thread: Thread { pid, ..SQLITE },
        lasted_us,
        ..FSYNC
    };
    let fsync = of(CallKind::Fsync, 101, 7000);
    let others = FSYNC.by(OTHER);
    assert_eq!(
        forced(&[
            fsync,
            CallOf {
                lasted_us: 9000,
                ..others
            }
        ]),
        ("fsync".into(), 101.into())
    );
    let one_more = of(CallKind::Fsync, 102, 8000);
    assert_eq!(forced(&[fsync, one_more]), ("fsync".into(), Value::Null));
    let another = of(CallKind::Fdatasync, 102, 8000);
    assert_eq!(forced(&[fsync, another]), ("call".into(), Value::Null));
    assert_eq!(forced(&[]), (Value::Null, Value::Null));
}

/// A commit for which nobody waited is the timer's if the transaction was as old as the mount options say.
#[test]
fn the_timer_forces_a_commit_of_its_age() {
    let forced = |age_us: u64, options: &str| {
        let mut s = Scene::begun();
        s.manifest.filesystem.as_mut().unwrap().mount_options = Some(options.to_owned());
        // Of a recording without calls nothing is known.
        s.call(FSYNC.by(OTHER));
        s.handle(CREATE, &[8]);
        s.wait(age_us);
        s.commit(2000, &[8]);
        let rows = run(&s, &["events", "--columns", "op,forced_by"]);
        rows.last().unwrap()["forced_by"].clone()
    };
    let timer: Value = "timer".into();
    assert_eq!(forced(5_200_000, "rw,relatime"), timer);
    assert_eq!(forced(30_200_000, "rw,commit=30"), timer);
    for (age_us, options) in [
        (2_000_000, "rw"),
        (9_000_000, "rw"),
        (5_200_000, "rw,commit=30"),
        (5_200_000, "rw,commit=x"),
    ] {
        assert_eq!(forced(age_us, options), Value::Null, "{age_us} {options}");
    }
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

/// Calls are not rows: if a filter selects rows, no transactions are reported and nothing is divided by them.
#[test]
fn a_tree_of_some_rows_has_no_transactions() {
    let (_tmp, path) = saved(&two_databases());
    let some = ["analyze", "--tree", "--where", "bytes > 0", &path];
    let tree = json(&[&some[..], &["--json"]].concat());
    assert_eq!(tree["device_bytes"], 4 * 4096);
    assert!(tree["transactions"].is_null(), "{tree}");
    for owner in tree["owners"].as_array().unwrap() {
        assert!(owner["transactions"].is_null(), "{owner}");
        assert_eq!(owner["write_calls"].as_array().unwrap().len(), 0);
    }
    let text = mostrace(&some);
    assert!(
        text.contains("the database") && !text.contains("write()"),
        "{text}"
    );
    let of_database = text.lines().find(|line| line.contains("the database"));
    // The fields are name, bytes and percent, without bytes per transaction.
    let figures = of_database.unwrap().split_once("the database").unwrap().1;
    assert_eq!(figures.split_whitespace().count(), 2, "{text}");
}

/// Writes a page of a file, so that the file has a name.
fn named(s: &mut Scene, sector: u64, inode: u64, name: &[u8]) {
    s.owned(WRITE | SYNC, sector, 4096, SQLITE, Origin::FILE);
    s.file(sector, 4096, inode, 0, name);
    s.dirtier(sector, 4096, SQLITE);
}

/// Returns the offset of a WAL's frame.
fn frame(nth: u64) -> u64 {
    32 + nth * (24 + 4096)
}

/// A transaction in DELETE mode of `thread` in a.db (inode 21, its journal 20), with one in WAL mode of another process in
/// b.db (32, its WAL 31) between its calls.
fn two_databases() -> Scene {
    let mut s = Scene::begun();
    for (sector, inode, name) in [
        (800, 20, &b"a.db-journal"[..]),
        (900, 21, b"a.db"),
        (1000, 31, b"b.db-wal"),
        (1100, 32, b"b.db"),
    ] {
        named(&mut s, sector, inode, name);
    }
    let write = |thread, inode, bytes| CallOf {
        thread,
        kind: CallKind::Write,
        inode,
        offset: 0,
        bytes,
        first_bytes: None,
        lasted_us: 10,
    };
    let sync = |thread, inode| CallOf {
        thread,
        inode,
        kind: CallKind::Fdatasync,
        ..FSYNC
    };
    for nth in 0..3 {
        s.call(CallOf {
            first_bytes: Some([0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]),
            ..write(SQLITE, 20, 512)
        });
        let offset = frame(nth);
        s.call(CallOf {
            offset,
            first_bytes: Some([0, 0, 0, 2, 0, 0, 0, 9]),
            ..write(OTHER, 31, 24)
        });
        s.call(sync(SQLITE, 20));
        s.call(CallOf {
            offset: offset + 24,
            ..write(OTHER, 31, 4096)
        });
        s.call(write(SQLITE, 21, 4096));
        s.call(sync(OTHER, 31));
        s.call(sync(SQLITE, 21));
        s.call(CallOf {
            kind: CallKind::Unlink,
            inode: 20,
            ..FSYNC
        });
    }
    // This call is on a file that belongs to no database.
    s.call(write(OTHER, 77, 100));
    s
}

#[test]
fn transactions_are_told_apart_by_process_and_database() {
    let s = two_databases();
    let (_tmp, path) = saved(&s);
    let tree = json(&["analyze", "--tree", &path, "--json"]);
    let owners = tree["owners"].as_array().unwrap();
    let owner = |process: &str, database: Value| {
        let is_it = |owner: &&Value| owner["process"] == process && owner["database"] == database;
        owners.iter().find(is_it).unwrap().clone()
    };
    let a = owner("sqlite3:100", "a.db".into());
    assert_eq!(a["transactions"], 3);
    let calls = |role: &str, calls: u64, bytes: u64, syncs: u64| serde_json::json!({ "role": role, "calls": calls, "bytes": bytes, "syncs": syncs });
    assert_eq!(
        a["write_calls"].as_array().unwrap()[..],
        [
            calls("rollback_journal", 3, 1536, 3),
            calls("db", 3, 12288, 3)
        ]
    );
    assert_eq!(a["device"]["bytes"], 8192);
    let journal = &a["device"]["parts"].as_array().unwrap()[..];
    let part = |name: &str| serde_json::json!({ "name": name, "bytes": 4096, "parts": [] });
    assert_eq!(
        journal,
        [part("the database"), part("SQLite's rollback journal")]
    );
    assert_eq!(tree["device_bytes"], 4 * 4096);
    assert_eq!(tree["transactions"], 6);
    assert_eq!(owner("other:200", "b.db".into())["device"]["bytes"], 0);
    // Another process wrote to the device: what was asked and what was written are reported for those who did it.
    let options = mostrace_tables::analysis::Options::default();
    let analysis = mostrace_tables::analysis::Analysis::open(path.as_ref(), &options).unwrap();
    let databases = analysis.databases;
    let found: Vec<_> = databases
        .iter()
        .map(|d| {
            (
                d.tgid,
                d.path.as_deref(),
                d.transactions().least,
                d.total().bytes,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (100, Some(&b"a.db"[..]), 3, 13824),
            (200, Some(&b"b.db"[..]), 3, 3 * 4120),
            (200, None, 0, 100),
        ]
    );
}

#[test]
fn an_analysis_begins_with_what_it_found() {
    let finding = |s: &Scene| {
        let (_tmp, path) = saved(s);
        let path = path.as_str();
        let text = mostrace(&["analyze", path]);
        let finding = json(&["analyze", path, "--json"])["finding"].take();
        let headline = finding["headline"].as_str().unwrap();
        let parts = finding["parts"].as_array().unwrap().iter();
        let part = |part: &Value| {
            let because = part["because"].as_str().map(|why| format!(", {why}"));
            let because = because.unwrap_or_default();
            format!(
                "{:>5} %  {}{because}",
                part["percent"].as_u64().unwrap(),
                part["layer"].as_str().unwrap()
            )
        };
        let lines: Vec<String> = std::iter::once(headline.to_owned())
            .chain(parts.map(part))
            .collect();
        assert!(text.starts_with(&(lines.join("\n") + "\n")), "{text}");
        lines
    };
    let mut s = two_databases();
    assert_eq!(
        finding(&s),
        [
            "Each of 6 SQLite transactions wrote 2.7 kB: 0.6 × what was passed to write().",
            "   50 %  the database",
            "   25 %  SQLite's rollback journal",
            "   25 %  SQLite's WAL",
        ]
    );
    s.manifest.payload = Some(mostrace_bundle::manifest::Payload {
        payload_bytes: 300,
        transactions: 6,
        ..Default::default()
    });
    s.handle(
        HandleOf {
            inode: 20,
            ..UNLINK
        },
        &[8],
    );
    s.commit(2000, &[8]);
    assert_eq!(
        finding(&s),
        [
            "Each of 6 transactions stored 50 B and wrote 4.8 kB: 95.6 × what was stored, 1.1 × what was passed to write().",
            "   43 %  ext4's journal, because the rollback journal was deleted",
            "   29 %  the database",
            "   14 %  SQLite's rollback journal",
            "   14 %  others",
        ]
    );
    // Others have written too, so what the workload stored is not everything.
    let mut busy = two_databases();
    for at in 0..20 {
        let commit = CallOf {
            kind: CallKind::Write,
            inode: 31,
            bytes: 24,
            ..FSYNC.by(OTHER)
        };
        busy.call(CallOf {
            offset: frame(3 + at),
            first_bytes: Some([1; 8]),
            ..commit
        });
    }
    busy.manifest.payload.clone_from(&s.manifest.payload);
    assert_eq!(
        finding(&busy)[0],
        "Each of 26 SQLite transactions wrote 630 B: 0.6 × what was passed to write()."
    );
    one_number_of_transactions(&busy, 26);
    one_number_of_transactions(&s, 6);
    let mut quiet = Scene::new();
    quiet.owned(READ, 800, 4096, SQLITE, Origin::FILE);
    let (_tmp, path) = saved(&quiet);
    assert_eq!(
        json(&["analyze", &path, "--json"])["finding"]["headline"],
        "Nothing was written, and 4.1 kB were read, 100 % by sqlite3."
    );
    assert_eq!(
        finding(&Scene::new()),
        ["No IO was seen: was this the device?"]
    );
}

/// The tree, a comparison, a limit and the page have the same number.
fn one_number_of_transactions(s: &Scene, transactions: u64) {
    let (tmp, path) = saved(s);
    let path = path.as_str();
    let tree = json(&["analyze", "--tree", path, "--json"]);
    let diff = json(&["diff", path, path, "--json"]);
    for side in [&tree, &diff["a"]] {
        assert_eq!(side["transactions"], transactions);
        assert_eq!(side["transactions_sure"], "exact");
    }
    let written = tree["device_bytes"].as_f64().unwrap();
    let each = (written / transactions as f64).ceil();
    let check = |limit: f64| {
        let limit = format!("{limit:.0}");
        let check = ["check", path, "--max-bytes-per-transaction", &limit];
        say(program().args(check)).status == Some(0)
    };
    assert_eq!([check(each), check(each - 1.0)], [true, false]);
    let page = tmp.path().join("page.html");
    mostrace(&["report", path, "-o", page.to_str().unwrap()]);
    let page = std::fs::read_to_string(page).unwrap();
    let number = format!(r#""transactions":{transactions},"#);
    assert!(page.contains(&number), "{number}");
}

/// A step of a random scene.
#[derive(Clone, Debug)]
enum Step {
    Handle {
        who: usize,
        what: usize,
        overlaps: bool,
        homes: Vec<u64>,
    },
    Commit,
    Home {
        block: u64,
        blocks: u32,
    },
    Data {
        who: usize,
        block: u64,
        dirtied: bool,
    },
    Call {
        who: usize,
        lasted_us: u64,
    },
    Superblock,
}

fn step() -> impl Strategy<Value = Step> {
    let homes = prop::collection::btree_set(1u64..12, 0..6);
    prop_oneof![
        4 => (0usize..3, 0usize..3, any::<bool>(), homes).prop_map(|(who, what, overlaps, homes)| {
            Step::Handle { who, what, overlaps, homes: homes.into_iter().map(|b| b * 8).collect() }
        }),
        2 => Just(Step::Commit),
        2 => (1u64..10, 1u32..4).prop_map(|(block, blocks)| Step::Home { block, blocks }),
        2 => (0usize..3, 100u64..120, any::<bool>())
            .prop_map(|(who, block, dirtied)| Step::Data { who, block, dirtied }),
        1 => (0usize..3, 1u64..20_000).prop_map(|(who, lasted_us)| Step::Call { who, lasted_us }),
        1 => Just(Step::Superblock),
    ]
}

fn play(steps: &[Step]) -> Scene {
    let who = [SQLITE, OTHER, KWORKER];
    let what = [CREATE, UNLINK, FLUSHER];
    let mut s = Scene::new();
    let mut homes: Vec<u64> = Vec::new();
    for step in steps {
        match step {
            Step::Handle {
                who: by,
                what: of,
                overlaps,
                homes: dirtied,
            } => {
                let new: Vec<u64> = dirtied
                    .iter()
                    .copied()
                    .filter(|h| !homes.contains(h))
                    .collect();
                let lasted_us = if *overlaps { 2500 } else { 50 };
                let handle = HandleOf {
                    thread: who[*by],
                    overlaps: *overlaps,
                    lasted_us,
                    ..what[*of]
                };
                s.handle(handle, &new);
                homes.extend(new);
            }
            Step::Commit => {
                s.commit(2000, &homes);
                homes.clear();
            }
            Step::Home { block, blocks } => {
                s.owned(WRITE, block * 8, blocks * 4096, KWORKER, Origin::BDEV);
            }
            Step::Data {
                who: by,
                block,
                dirtied,
            } => {
                s.owned(WRITE, block * 8, 4096, who[*by], Origin::FILE);
                s.file(block * 8, 4096, 12, 0, b"a.db");
                if *dirtied {
                    s.dirtier(block * 8, 4096, who[*by]);
                }
            }
            Step::Call { who: by, lasted_us } => {
                let lasted_us = *lasted_us;
                s.call(CallOf {
                    thread: who[*by],
                    lasted_us,
                    ..FSYNC
                });
            }
            Step::Superblock => {
                s.request(WRITE | SYNC, 1992, 4096, JBD2);
                s.journal(1992, 4096, JBD2, Origin::JOURNAL, Jbd2::SUPERBLOCK, NONE);
            }
        }
    }
    // A trace needs at least one event.
    s.write_file(800, 4096, 12, b"a.db");
    s
}

proptest! {
    #![proptest_config(test_support::property::config(file!(), 24))]

    /// Whatever happens, the causers' shares sum to the rows' bytes.
    #[test]
    fn causes_have_the_bytes_and_requests_of_classes(steps in prop::collection::vec(step(), 0..40), equal in any::<bool>()) {
        let s = play(&steps);
        let tmp = tempfile::tempdir().unwrap();
        let path = s.save(tmp.path());
        let options = mostrace_tables::analysis::Options {
            causes: Some(if equal { mostrace_trace::causes::Sharing::Equal } else { mostrace_trace::causes::Sharing::First }),
            ..Default::default()
        };
        let analysis = mostrace_tables::analysis::Analysis::open(&path, &options).unwrap();
        let groupings = ["class", "cause_process", "cause_op", "cause_file", "cause_known", "cause_pid", "causes"];
        let by = groupings.map(|name| mostrace_tables::tables::Grouping {
            by: vec![mostrace_tables::facts::Column::find(name).unwrap()],
            top: None,
 every: None,
        });
        let whole = mostrace_tables::tables::summed(&analysis.facts, by[0].clone(), None).unwrap();
        let several = mostrace_tables::tables::all_summed(&analysis.facts, &by, None).unwrap();
        let tree = mostrace_tables::tables::tree::of(&analysis.facts, &analysis.databases, "ext4", None).unwrap();
        prop_assert_eq!(tree.leaves(), whole.total.write_bytes);
        // The fold sums up what the tables do.
        let mut charging = mostrace_trace::charged::Charging::default();
        let recordings = mostrace_trace::recording::Recording::open_all(std::slice::from_ref(&path), false).unwrap();
        let reading = mostrace_trace::reading::read(recordings, &options, &|_| {}, &mut charging).unwrap();
        let charged = charging.charged(&reading.origins, reading.manifest.as_ref(), &reading.databases);
        prop_assert_eq!(charged.total, whole.total);
        prop_assert_eq!(charged.sums(), mostrace_tables::tables::for_the_answer(&analysis.facts, None).unwrap());
        let of_fold = charged.tree();
        prop_assert_eq!(of_fold.total, tree.total);
        prop_assert_eq!(of_fold.owners, tree.owners.clone());
        let owners: u64 = tree.owners.iter().map(|owner| owner.totals.flushes).sum();
        prop_assert_eq!(owners, whole.total.flushes);
        // Cut into shares or not, the groups by class are the same.
        prop_assert_eq!(&several[0].groups, &whole.groups);
        for (groups, name) in several.iter().zip(groupings) {
            prop_assert_eq!(groups.total, whole.total, "{}", name);
            let sum = |field: fn(&mostrace_trace::sums::Totals) -> u64| {
                groups.groups.iter().map(|(_, totals)| field(totals)).sum::<u64>()
            };
            prop_assert_eq!(sum(|t| t.write_bytes), whole.total.write_bytes, "{}", name);
            prop_assert_eq!(sum(|t| t.read_bytes), whole.total.read_bytes, "{}", name);
            prop_assert!(sum(|t| t.requests) >= whole.total.requests, "{}", name);
        }
    }
}
