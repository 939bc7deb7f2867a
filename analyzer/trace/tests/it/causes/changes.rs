// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several calls change one block, and each that did is named.

use super::*;

/// Two threads change one block in a transaction. If each change has an entry, the block is shared; if only the first has one, the
/// second may have been made by anybody who took part.
#[test]
fn whoever_changes_a_block_after_the_first_is_not_left_out() {
    let unlink = UNLINK.by(OTHER);
    let copies = |s: &Scene| {
        let mut lines = written(s);
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
        written(&s),
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
        written(&s),
        [
            "regular sqlite3 write 12 shared 2",
            "regular other write 12 exact 1"
        ]
    );
    let by = told(&s).bytes_by(
        |_| true,
        |[comm, ..], known| format!("{comm} {}", known.as_str()),
    );
    let expected = [
        ("other exact", 4096),
        ("other shared", 2048),
        ("sqlite3 shared", 2048),
    ];
    assert_eq!(by, of(expected));
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
    assert_eq!(written(&s), ["regular sqlite3 write 12 shared 2"]);
    let expected = [("other", 2048), ("sqlite3", 4096 + 2048)];
    assert_eq!(told(&s).bytes_by(|_| true, by_comm), of(expected));
}

#[test]
fn a_change_that_may_be_unseen_leaves_the_first() {
    let mut s = Scene::begun();
    s.call(WRITER);
    // Made dirty through a mapping, before the call.
    write_out(&mut s, 0, 4096, THIRD, 5000);
    // Nobody's call.
    write_out(&mut s, 8192, 4096, THIRD, 500);
    let lines = written(&s);
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
    assert_eq!(written(&s), ["regular sqlite3 write 12 first 1"]);
    // A call of another task was in progress when the page was queued.
    let mut s = Scene::begun();
    s.call(WRITER);
    write_out(&mut s, 0, 4096, SQLITE, 1100);
    s.call(CallOf {
        lasted_us: 1500,
        ..WRITER.by(OTHER)
    });
    assert_eq!(written(&s), ["regular sqlite3 write 12 set 2"]);
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
        written(&s),
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
        written(&s),
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
    assert_eq!(written(&s), ["regular sqlite3 write 12 set 2"; 2]);
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
    assert_eq!(written(&s), ["regular sqlite3 write 12 first 1"]);
    let notices = told(&s).reading.notices.join("\n");
    let line = "changes to contents: no room for 1; what they touched is not said to be exact";
    assert!(notices.contains(line), "{notices}");
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
    assert_eq!(written(&s), ["regular third write 12 exact 1"]);
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
        written(&s).pop().unwrap()
    };
    assert_eq!(freed(true), "unmapped third create 12 exact 1");
    // Until then the journal may write it home as it was.
    assert_eq!(freed(false), "unmapped sqlite3 create 12 exact 1");
}
