// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls of each kind, made by hand.

use crate::common;

use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use common::{
    O_CREAT, O_DIRECT, O_DIRECTORY, O_EXCL, O_RDWR, O_SYNC, O_TRUNC, Script, assert_same, name,
    opened, settings,
};
use mostrace_replay::{
    Call, Change, Contents, Error, FileCall, FileId, Opened, Range, Replay, Settings, Start,
    StartFile, Target, Timing, replay,
};
use test_support::wait;

const FILE: FileId = FileId(1);
/// `FALLOC_FL_KEEP_SIZE` of `<linux/falloc.h>`.
const KEEP_SIZE: u32 = 1;
const ALL: Range = Range {
    offset: 0,
    bytes: 8192,
};

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn calls_on_an_open_file() {
    let root = tempfile::tempdir().unwrap();
    let mut script = Script::default();
    script.open(1, "f", O_RDWR | O_CREAT | O_EXCL);
    script.write(1, 100, 3_000_000);
    let offset = Some(2_999_000);
    let (file, target) = (FILE, Target::File(FILE));
    let read = Call::Of(
        file,
        FileCall::Read {
            offset,
            bytes: 5_000_000,
        },
    );
    script.call(read, 1100);
    script.call(
        Call::Of(
            file,
            FileCall::Write {
                offset: None,
                bytes: 10,
            },
        ),
        10,
    );
    script.call(
        Call::Of(
            file,
            FileCall::Fallocate(
                Range {
                    offset: 0,
                    bytes: 4_000_000,
                },
                0,
            ),
        ),
        0,
    );
    script.call(Call::Of(file, FileCall::Fsync), 0);
    script.call(Call::Of(file, FileCall::Fdatasync), 0);
    script.call(Call::Of(file, FileCall::SyncRange(ALL, 7)), 0);
    // This begins the writing alone.
    script.call(Call::Of(file, FileCall::SyncRange(ALL, 2)), 0);
    script.call(Call::Of(file, FileCall::Fadvise(ALL, 4)), 0);
    script.call(Call::Of(file, FileCall::Syncfs), 0);
    script.call(Call::Sync, 0);
    script.call(Call::Change(target.clone(), Change::Chmod(0o600)), 0);
    script.call(Call::Change(target.clone(), Change::Utimes), 0);
    let xattr = b"user.name".to_vec();
    let set = |flags| {
        Call::Change(
            target.clone(),
            Change::Setxattr {
                name: xattr.clone(),
                bytes: 77,
                flags,
            },
        )
    };
    script.call(set(1), 0).call(set(1), -17);
    script.call(
        Call::Change(target.clone(), Change::Removexattr(xattr.clone())),
        0,
    );
    script.call(
        Call::Change(target.clone(), Change::Removexattr(xattr.clone())),
        -61,
    );
    script.call(set(0), 0);
    script.call(Call::Change(target.clone(), Change::Truncate(3_500_000)), 0);
    if is_root() {
        for (uid, gid) in [(12, u32::MAX), (u32::MAX, 34)] {
            let change = Change::Chown { uid, gid };
            script.call(Call::Change(target.clone(), change), 0);
        }
    }
    script.call(Call::Of(file, FileCall::Close), 0);
    script.call(Call::Of(file, FileCall::Close), -9);
    script.call(Call::Of(file, FileCall::Fsync), -9);
    let outcome = script.replay(root.path());
    assert_same(&outcome);
    assert_eq!(outcome.durable_replayed.all().len(), 5);
    let look = root.path().join("f").metadata().unwrap();
    assert_eq!((look.len(), look.mode()), (3_500_000, 0o100600));
    assert!(!is_root() || (look.uid(), look.gid()) == (12, 34));
    let mut value = [0; 100];
    let length = rustix::fs::getxattr(root.path().join("f"), "user.name", &mut value[..]);
    assert_eq!(length, Ok(77));
}

#[test]
fn a_mapping_outlives_the_descriptor() {
    let root = tempfile::tempdir().unwrap();
    let mut script = Script::default();
    script.open(1, "f", O_RDWR | O_CREAT | O_EXCL);
    script.write(1, 0, 20_000);
    script.call(Call::Of(FILE, FileCall::Close), 0);
    let range = Range {
        offset: 4096,
        bytes: 12_000,
    };
    script.call(Call::Of(FILE, FileCall::Store(range)), 0);
    script.call(Call::Of(FILE, FileCall::Msync(range, 4)), 0);
    let behind = Range {
        offset: 1 << 40,
        bytes: 1,
    };
    script.call(Call::Of(FILE, FileCall::Store(behind)), -14);
    let outcome = script.replay(root.path());
    assert_same(&outcome);
    // A store is one byte of each page, and nothing else changed.
    let found = std::fs::read(root.path().join("f")).unwrap();
    let mut only = Script::default();
    only.open(1, "f", O_RDWR | O_CREAT | O_EXCL)
        .write(1, 0, 20_000);
    let other = tempfile::tempdir().unwrap();
    only.replay(other.path());
    let written = std::fs::read(other.path().join("f")).unwrap();
    assert_eq!(found.len(), 20_000);
    let changed: Vec<usize> = (0..20_000)
        .filter(|at| found[*at] != written[*at])
        .collect();
    assert_eq!(changed, [4096, 8192, 12288]);
}

#[test]
fn flags_of_an_open_are_kept() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut script = Script::default();
    script.open(1, "f", O_RDWR | O_CREAT | O_DIRECT | O_SYNC);
    script.write(1, 0, 8192);
    // O_DIRECT takes whole sectors only.
    script.call(
        Call::Of(
            FILE,
            FileCall::Write {
                offset: Some(1),
                bytes: 100,
            },
        ),
        -22,
    );
    script.open(2, "f", O_RDWR);
    script.call(
        Call::Of(
            FileId(2),
            FileCall::Write {
                offset: Some(1),
                bytes: 100,
            },
        ),
        100,
    );
    script.call(Call::Open(opened(3, "f", O_RDWR | O_CREAT | O_EXCL)), -17);
    script.call(Call::Open(opened(3, "f", O_DIRECTORY)), -20);
    script.call(Call::Open(opened(3, "g", O_RDWR)), -2);
    script.call(
        Call::Of(
            FileId(3),
            FileCall::Read {
                offset: Some(0),
                bytes: 1,
            },
        ),
        -9,
    );
    assert_same(&script.replay(root.path()));
}

#[test]
fn copies() {
    let root = tempfile::tempdir().unwrap();
    let mut script = Script::default();
    script.open(1, "f", O_RDWR | O_CREAT).write(1, 0, 10_000);
    script.open(2, "g", O_RDWR | O_CREAT);
    let copy = |from| {
        Call::Of(
            FileId(2),
            FileCall::Copy {
                from,
                from_offset: Some(1000),
                offset: Some(500),
                bytes: 20_000,
            },
        )
    };
    script.call(copy(Some(FILE)), 9000);
    script.call(copy(None), 20_000);
    assert_same(&script.replay(root.path()));
    let look = root.path().join("g").metadata().unwrap();
    assert_eq!(look.len(), 20_500);
}

#[test]
fn what_another_filesystem_cannot_do_is_another_result() {
    let base = Path::new("/dev/shm");
    let root = tempfile::tempdir_in(base).unwrap();
    let mut script = Script::default();
    script
        .open(1, "f", O_RDWR | O_CREAT)
        .open(2, "g", O_RDWR | O_CREAT);
    let (from, to, range) = (FILE, FileId(2), ALL);
    script.call(
        Call::Of(
            to,
            FileCall::Clone {
                from,
                from_offset: 0,
                range,
            },
        ),
        0,
    );
    script.call(Call::Of(FILE, FileCall::AtomicStart), 0);
    script.call(Call::Of(FILE, FileCall::AtomicCommit), 0);
    script.call(Call::Of(FILE, FileCall::AtomicAbort), 0);
    let outcome = script.replay(root.path());
    assert_eq!(outcome.made_and_same(), (6, 2));
    let text = outcome.to_string();
    assert!(
        text.contains("ok -> EOPNOTSUPP: 1") && text.contains("ok -> ENOTTY: 1"),
        "{text}"
    );
    let json = serde_json::to_value(&outcome).unwrap();
    assert_eq!(json["calls"]["clone"]["others"]["ok -> EOPNOTSUPP"], 1);
    assert_eq!(json["durable_replayed"]["calls"], 0);
}

#[test]
fn the_start_is_what_the_operations_found() {
    let mut script = Script::default();
    let seen = Opened {
        size: Some(70_000),
        i_mode: 0o100640,
        ..opened(1, "a/b/seen", O_RDWR)
    };
    script.call(Call::Opened(seen), 0);
    script.open(2, "a/read", 0);
    let (file, offset) = (FileId(2), Some(500));
    script.call(Call::Of(file, FileCall::Read { offset, bytes: 100 }), 100);
    script.open(3, "a/truncated", O_RDWR | O_TRUNC);
    script.open(4, "a/made", O_RDWR | O_CREAT);
    script.call(
        Call::Rename {
            from: name("old"),
            to: name("new"),
            flags: 0,
        },
        0,
    );
    script.call(Call::Unlink(name("new/x")), 0);
    script.call(Call::Open(opened(5, "absent", 0)), -2);
    script.call(
        Call::Mkdir {
            path: name("exists"),
            mode: 0o700,
        },
        -17,
    );
    script.call(Call::Rmdir(name("removed")), 0);
    script.call(
        Call::Mkdir {
            path: name("removed"),
            mode: 0o700,
        },
        0,
    );
    let linked = Opened {
        inode: (12, 1),
        size: Some(5),
        i_mode: 0o100644,
        ..opened(6, "l", 0)
    };
    script.call(Call::Open(linked.clone()), 0);
    script.call(
        Call::Open(Opened {
            path: Some(name("a/m")),
            ..linked
        }),
        0,
    );
    script.open(7, "a/kept", O_RDWR);
    let (file, range) = (FileId(7), ALL);
    script.call(Call::Of(file, FileCall::Fallocate(range, KEEP_SIZE)), 0);
    script.call(Call::Of(file, FileCall::Read { offset, bytes: 100 }), 100);
    script.open(8, "a/stored", O_RDWR);
    let range = Range {
        offset: 4096,
        bytes: 100,
    };
    script.call(Call::Of(FileId(8), FileCall::Store(range)), 0);
    script.call(Call::Open(opened(9, "late", 0)), -2);
    let late = Opened {
        created: false,
        i_mode: 0o100644,
        ..opened(9, "late", O_RDWR | O_CREAT)
    };
    script.call(Call::Open(late), 0);
    let start = Start::of(&script.recorded());
    let folders: Vec<String> = start
        .folders
        .keys()
        .map(|name| format!("{name:?}"))
        .collect();
    assert_eq!(folders, ["/a", "/a/b", "/exists", "/old", "/removed"]);
    let file = |bytes, mode| StartFile { bytes, mode };
    let files: Vec<(String, StartFile)> = start
        .files
        .iter()
        .map(|(name, file)| (format!("{name:?}"), *file))
        .collect();
    let expected = [
        ("/a/b/seen", file(70_000, Some(0o640))),
        ("/a/kept", file(600, None)),
        ("/a/read", file(600, None)),
        // The page that was written to begins within the file.
        ("/a/stored", file(4097, None)),
        ("/a/truncated", file(0, None)),
        ("/l", file(5, Some(0o644))),
        ("/old/x", file(0, None)),
    ];
    assert_eq!(files, expected.map(|(name, file)| (name.to_owned(), file)));
    assert_eq!(
        start.links.into_iter().collect::<Vec<_>>(),
        [(name("a/m"), name("l"))]
    );
    let root = tempfile::tempdir().unwrap();
    assert_same(&script.replay(root.path()));
}

#[test]
fn kept_time_is_the_applications() {
    let mut script = Script::default();
    for nth in 0..50 {
        let path = name(&format!("f{nth}"));
        script.call_of(nth % 3, Call::Mkdir { path, mode: 0o700 }, 0);
    }
    let mut recorded = script.recorded();
    for (nth, operation) in (1..).zip(&mut recorded.operations) {
        operation.begin_ns = 1000 + nth * 4_000_000;
        operation.end_ns = operation.begin_ns + 1000;
    }
    let replayed = |timing| {
        let root = tempfile::tempdir_in("/dev/shm").unwrap();
        let settings = Settings {
            timing,
            ..settings(root.path())
        };
        let begin = Instant::now();
        let outcome = replay(&recorded, &settings, |_| {}).unwrap();
        (outcome, begin.elapsed())
    };
    // A busy machine starts calls late: there is a time when it does not.
    wait::until("calls start when they did", || {
        let (outcome, elapsed) = replayed(Timing::Kept);
        assert_same(&outcome);
        assert!(elapsed >= Duration::from_millis(196), "{outcome}");
        outcome.start_error.unwrap().mean_percent < 20.0
    });
    wait::until("calls follow each other", || {
        replayed(Timing::Fast).1 < Duration::from_millis(150)
    });
}

#[test]
fn contents_are_those_asked_for() {
    for (contents, zeros) in [(Contents::Zeros, 10_000), (Contents::Ratio(0.25), 6928)] {
        let root = tempfile::tempdir().unwrap();
        let mut script = Script::default();
        script.open(1, "f", O_RDWR | O_CREAT).write(1, 0, 10_000);
        let settings = Settings {
            contents,
            ..settings(root.path())
        };
        replay(&script.recorded(), &settings, |_| {}).unwrap();
        let file = std::fs::File::open(root.path().join("f")).unwrap();
        let mut found = vec![1; 10_000];
        file.read_exact_at(&mut found, 0).unwrap();
        let found = found.iter().filter(|byte| **byte == 0).count();
        assert!(
            (zeros..=zeros + 100).contains(&found),
            "{contents:?}: {found}"
        );
    }
}

#[test]
fn a_folder_that_is_not_empty_is_refused() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("lost+found")).unwrap();
    let script = Script::default();
    let (recorded, settings) = (script.recorded(), settings(root.path()));
    assert!(Replay::prepare(&recorded, &settings).is_ok());
    symlink("/", root.path().join("mine")).unwrap();
    let refused = Replay::prepare(&recorded, &settings);
    assert!(matches!(refused, Err(Error::Refused { .. })));
}

/// Tells how many operations a second a replay makes: each writes to one of a few files, of several threads.
#[test]
fn fast_replays_make_many_operations_a_second() {
    let root = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut script = Script::default();
    const THREADS: u64 = 8;
    for file in 1..=THREADS {
        script.open(file, &format!("f{file}"), O_RDWR | O_CREAT);
    }
    for nth in 0..200_000u64 {
        let (thread, file) = (nth % THREADS, FileId(nth / 3 % THREADS + 1));
        let (offset, bytes) = (Some(nth % 1000 * 100), 100);
        script.call_of(
            thread as u32,
            Call::Of(file, FileCall::Write { offset, bytes }),
            100,
        );
    }
    let (recorded, settings) = (script.recorded(), settings(root.path()));
    let replay = Replay::prepare(&recorded, &settings).unwrap();
    let begin = Instant::now();
    let outcome = replay.run(|_| {}).unwrap();
    let rate = 200_000.0 / begin.elapsed().as_secs_f64();
    println!("{rate:.0} operations a second");
    assert_same(&outcome);
}
