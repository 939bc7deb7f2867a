// SPDX-License-Identifier: MIT OR Apache-2.0
//! A call, a timer or a commit forces a request; the row says which.

use mostrace_trace::causes::Force;

use super::*;

/// Returns what forced the last row.
fn last_forced(scene: &Scene) -> Option<Force> {
    let last = told(scene).rows.pop().unwrap();
    last.verdict.forced.map(|forced| forced.by)
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
    let told = told(&s);
    let [.., commit, flush] = &told.rows[..] else {
        panic!("no commit and flush")
    };
    assert_eq!(flush.row.op, Op::Flush);
    let cause = told.words(flush.shares[0].cause);
    assert_eq!(cause, ["sqlite3", "fsync", "12"]);
    // It was called 3 ms before the descriptor; the flush is queued 2 ms after that, and takes 0.1 ms.
    assert_eq!(flush.verdict.latency_ns, Some(5_100_000));
    assert_eq!(commit.verdict.latency_ns, Some(4_100_000));
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
        let told = told(&s);
        let last = &told.rows[told.rows.len() - 4..];
        let all: Vec<_> = last.iter().map(|judged| judged.verdict.forced).collect();
        assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
        all[0].map(|forced| (forced.by, forced.call.map(|(pid, _)| pid)))
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
        Some((Force::Fsync, Some(101)))
    );
    let one_more = of(CallKind::Fsync, 102, 8000);
    assert_eq!(forced(&[fsync, one_more]), Some((Force::Fsync, None)));
    let another = of(CallKind::Fdatasync, 102, 8000);
    assert_eq!(forced(&[fsync, another]), Some((Force::Call, None)));
    assert_eq!(forced(&[]), None);
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
        last_forced(&s)
    };
    let timer = Some(Force::Timer);
    assert_eq!(forced(5_200_000, "rw,relatime"), timer);
    assert_eq!(forced(30_200_000, "rw,commit=30"), timer);
    for (age_us, options) in [
        (2_000_000, "rw"),
        (9_000_000, "rw"),
        (5_200_000, "rw,commit=30"),
        (5_200_000, "rw,commit=x"),
    ] {
        assert_eq!(forced(age_us, options), None, "{age_us} {options}");
    }
}

/// What the kernel's threads write of their own accord has a reason, but sync has them write, too.
#[test]
fn the_kernels_threads_write_back_or_lack_memory() {
    const KSWAPD: Thread = Thread::new(61, 61, "kswapd0");
    let forced = |thread: Thread, origin: Origin, call: CallOf| {
        let mut s = Scene::begun();
        s.call(FSYNC.by(OTHER));
        s.owned(WRITE, 4096, 4096, thread, origin);
        s.call(call);
        last_forced(&s)
    };
    let long = |kind| CallOf {
        kind,
        lasted_us: 50_000,
        ..FSYNC.by(OTHER)
    };
    let fsync = long(CallKind::Fsync);
    assert_eq!(forced(KSWAPD, Origin::FILE, fsync), Some(Force::Memory));
    assert_eq!(forced(KWORKER, Origin::FILE, fsync), Some(Force::Writeback));
    assert_eq!(forced(KWORKER, Origin::BDEV, fsync), Some(Force::Writeback));
    assert_eq!(forced(KSWAPD, Origin::UNKNOWN, fsync), None);
    assert_eq!(forced(OTHER, Origin::FILE, fsync), Some(Force::Fsync));
    let sync = long(CallKind::Sync);
    assert_eq!(forced(KSWAPD, Origin::FILE, sync), None);
    assert_eq!(forced(KWORKER, Origin::FILE, sync), None);
}
