// SPDX-License-Identifier: MIT OR Apache-2.0
//! A call, a timer or a commit forces a request; the row says which.

use super::*;

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

/// What the kernel's threads write of their own accord has a reason, but sync has them write, too.
#[test]
fn the_kernels_threads_write_back_or_lack_memory() {
    const KSWAPD: Thread = Thread::new(61, 61, "kswapd0");
    let forced = |thread: Thread, origin: Origin, call: CallOf| {
        let mut s = Scene::begun();
        s.call(FSYNC.by(OTHER));
        s.owned(WRITE, 4096, 4096, thread, origin);
        s.call(call);
        let rows = run(&s, &["events", "--columns", "op,forced_by"]);
        rows.last().unwrap()["forced_by"].clone()
    };
    let long = |kind| CallOf {
        kind,
        lasted_us: 50_000,
        ..FSYNC.by(OTHER)
    };
    let fsync = long(CallKind::Fsync);
    assert_eq!(forced(KSWAPD, Origin::FILE, fsync), "memory");
    assert_eq!(forced(KWORKER, Origin::FILE, fsync), "writeback");
    assert_eq!(forced(KWORKER, Origin::BDEV, fsync), "writeback");
    assert_eq!(forced(KSWAPD, Origin::UNKNOWN, fsync), Value::Null);
    assert_eq!(forced(OTHER, Origin::FILE, fsync), "fsync");
    let sync = long(CallKind::Sync);
    assert_eq!(forced(KSWAPD, Origin::FILE, sync), Value::Null);
    assert_eq!(forced(KWORKER, Origin::FILE, sync), Value::Null);
}
