// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings that want to harm: nothing outside the folder changes, memory stays bounded, and the replay ends at once.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::{Look, O_CREAT, O_DIRECTORY, O_RDWR, O_TRUNC, Script, name, opened, settings, tree};
use mostrace_replay::{Call, Error, FileId, Opened, Outcome, Range, Replay, Start, Target, replay};

/// A folder for the replay, with another one beside it that must not change.
struct Watched {
    base: tempfile::TempDir,
    before: BTreeMap<Vec<u8>, Look>,
}

impl Watched {
    fn new() -> Watched {
        let base = tempfile::tempdir_in("/dev/shm").unwrap();
        fs::create_dir(base.path().join("root")).unwrap();
        fs::create_dir_all(base.path().join("beside/folder")).unwrap();
        fs::write(base.path().join("beside/file"), "what was there").unwrap();
        let before = tree(&base.path().join("beside"));
        Watched { base, before }
    }

    fn root(&self) -> PathBuf {
        self.base.path().join("root")
    }

    fn beside(&self) -> PathBuf {
        self.base.path().join("beside")
    }

    /// Replays, and returns the outcome if nothing outside has changed.
    fn replay(&self, script: &Script) -> Outcome {
        let outcome = script.replay(&self.root());
        assert_eq!(tree(&self.beside()), self.before, "{outcome}");
        let content = fs::read(self.beside().join("file")).unwrap();
        assert_eq!(content, b"what was there", "{outcome}");
        outcome
    }
}

/// Links to a folder in all ways that lead out of the replay's folder.
fn ways_out(watched: &Watched) -> Vec<Vec<u8>> {
    let absolute = watched.beside().to_str().unwrap().as_bytes().to_vec();
    let up = b"../beside".to_vec();
    let far = format!("{}{}", "../".repeat(40), watched.beside().to_str().unwrap());
    let magic = format!("/proc/self/root{}", watched.beside().to_str().unwrap());
    vec![absolute, up, far.into_bytes(), magic.into_bytes()]
}

#[test]
fn no_link_leads_out() {
    let watched = Watched::new();
    let mut script = Script::default();
    for (nth, way) in ways_out(&watched).into_iter().enumerate() {
        let link = format!("link{nth}");
        let path = name(&link);
        script.call(
            Call::Symlink {
                target: way.clone(),
                path: path.clone(),
            },
            0,
        );
        let target = [&way[..], b"/file"].concat();
        let to_file = name(&format!("file{nth}"));
        script.call(
            Call::Symlink {
                target,
                path: to_file.clone(),
            },
            0,
        );
        for target in [to_file, name(&format!("{link}/file")), path] {
            let number = script.operations.len() as u64 + 1;
            let at = std::str::from_utf8(target.as_bytes()).unwrap().to_owned();
            script
                .open(number, &at, O_RDWR | O_CREAT | O_TRUNC)
                .write(number, 0, 100);
            let by_path = Target::Path(target.clone());
            script.call(
                Call::Truncate {
                    target: by_path.clone(),
                    length: 1,
                },
                0,
            );
            script.call(
                Call::Chmod {
                    target: by_path.clone(),
                    mode: 0o777,
                },
                0,
            );
            script.call(
                Call::Chown {
                    target: by_path.clone(),
                    uid: 1,
                    gid: 1,
                },
                0,
            );
            script.call(
                Call::Utimes {
                    target: by_path.clone(),
                },
                0,
            );
            let name = b"user.x".to_vec();
            let set = Call::Setxattr {
                target: by_path,
                name,
                bytes: 10,
                flags: 0,
            };
            script.call(set, 0);
        }
        let inside = |last: &str| name(&format!("{link}/{last}"));
        script.call(
            Call::Mkdir {
                path: inside("made"),
                mode: 0o777,
            },
            0,
        );
        script.call(
            Call::Mknod {
                path: inside("node"),
                mode: 0o10_0644,
            },
            0,
        );
        script.call(
            Call::Symlink {
                target: b"x".to_vec(),
                path: inside("s"),
            },
            0,
        );
        script.call(
            Call::Link {
                from: inside("file"),
                to: name(&format!("mine{nth}")),
            },
            0,
        );
        script.call(
            Call::Link {
                from: name("link0"),
                to: inside("hard"),
            },
            0,
        );
        script.call(
            Call::Rename {
                from: inside("file"),
                to: inside("moved"),
                flags: 0,
            },
            0,
        );
        script.call(
            Call::Rename {
                from: inside("folder"),
                to: name("taken"),
                flags: 2,
            },
            0,
        );
        script.call(
            Call::Unlink {
                path: inside("file"),
            },
            0,
        );
        script.call(
            Call::Rmdir {
                path: inside("folder"),
            },
            0,
        );
    }
    let outcome = watched.replay(&script);
    assert!(outcome.calls["symlink"].same >= 8, "{outcome}");
    // The test would see it: the same without the protection does change the folder beside.
    let link = watched.root().join("link0");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    fs::write(link.join("through"), "").unwrap();
    assert_ne!(tree(&watched.beside()), watched.before);
}

#[test]
fn no_link_that_comes_later_leads_out() {
    let watched = Watched::new();
    let mut script = Script::default();
    script.open(1, "a/file", O_RDWR | O_CREAT).write(1, 0, 10);
    script.call(
        Call::Mkdir {
            path: name("a/made"),
            mode: 0o777,
        },
        0,
    );
    script.call(
        Call::Unlink {
            path: name("a/file"),
        },
        0,
    );
    let (recorded, settings) = (script.recorded(), settings(&watched.root()));
    let replay = Replay::prepare(&recorded, &settings).unwrap();
    fs::remove_dir(watched.root().join("a")).unwrap();
    std::os::unix::fs::symlink("../beside", watched.root().join("a")).unwrap();
    let outcome = replay.run(|_| {}).unwrap();
    assert_eq!(tree(&watched.beside()), watched.before, "{outcome}");
    assert_eq!(outcome.made_and_same().1, 0, "{outcome}");
}

#[test]
fn devices_are_not_made_and_fifos_not_waited_for() {
    let watched = Watched::new();
    let mut script = Script::default();
    for (nth, kind) in [0o2_0000, 0o6_0000].into_iter().enumerate() {
        let path = name(&format!("device{nth}"));
        script.call(
            Call::Mknod {
                path,
                mode: kind | 0o666,
            },
            0,
        );
    }
    script.open(1, "f", O_RDWR | O_CREAT);
    let (from, to) = (name("f"), name("g"));
    script.call(Call::Rename { from, to, flags: 4 }, 0);
    script.call(
        Call::Mknod {
            path: name("fifo"),
            mode: 0o1_0666,
        },
        0,
    );
    for (file, flags) in [(2, 0), (3, 1), (4, 2)] {
        script.open(file, "fifo", flags);
        script.call(
            Call::Read {
                file: FileId(file),
                offset: None,
                bytes: 1,
            },
            1,
        );
    }
    let outcome = watched.replay(&script);
    assert_eq!(
        outcome.left_out["a replay makes no device nodes"], 3,
        "{outcome}"
    );
    let files: Vec<Vec<u8>> = tree(&watched.root()).into_keys().collect();
    assert_eq!(files, [&b"f"[..], b"fifo"]);
}

/// Returns the most memory that the process has had, bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

#[test]
fn numbers_cost_nothing() {
    let watched = Watched::new();
    let mut script = Script::default();
    script.open(1, "f", O_RDWR | O_CREAT).write(1, 0, 10);
    let file = FileId(1);
    let offsets = [
        None,
        Some(0),
        Some(1 << 40),
        Some(1 << 62),
        Some(1 << 63),
        Some(u64::MAX - 1),
    ];
    for offset in offsets {
        for (bytes, result) in [
            (1 << 62, 1 << 62),
            (u64::MAX, i64::MAX),
            (1 << 62, -28),
            (5, 9),
            (9, i64::MIN),
        ] {
            script.call(
                Call::Write {
                    file,
                    offset,
                    bytes,
                },
                result,
            );
            script.call(
                Call::Read {
                    file,
                    offset,
                    bytes,
                },
                result,
            );
            let from = Some(file);
            script.call(
                Call::Copy {
                    from,
                    from_offset: offset,
                    to: file,
                    offset,
                    bytes,
                },
                result,
            );
        }
        for bytes in [0, 1, 1 << 31, 1 << 63, u64::MAX] {
            let range = Range {
                offset: offset.unwrap_or(7),
                bytes,
            };
            script.call(Call::Store { file, range }, 0);
            script.call(
                Call::Msync {
                    file,
                    range,
                    flags: u32::MAX,
                },
                0,
            );
            script.call(
                Call::SyncRange {
                    file,
                    range,
                    flags: u32::MAX,
                },
                0,
            );
            script.call(
                Call::Fallocate {
                    file,
                    mode: u32::MAX,
                    range,
                },
                0,
            );
            let from_offset = range.bytes;
            script.call(
                Call::Clone {
                    from: file,
                    from_offset,
                    to: file,
                    range,
                },
                0,
            );
            let target = Target::File(file);
            script.call(
                Call::Setxattr {
                    target: target.clone(),
                    name: vec![0; 300],
                    bytes,
                    flags: 9,
                },
                0,
            );
            script.call(
                Call::Truncate {
                    target,
                    length: bytes,
                },
                0,
            );
        }
    }
    for flags in [u32::MAX, 3, 0o1000_0000, 0o2000_0000] {
        let open = Opened {
            mode: u32::MAX,
            i_mode: u32::MAX,
            ..opened(9, "g", flags)
        };
        script.call(Call::Open(open.clone()), i64::MIN);
        script.call(Call::Opened(open), i64::MAX);
    }
    for (file, path) in [(10, "x"), (11, "x/y"), (12, "")] {
        script.open(file, path, O_DIRECTORY);
        let path = name(path);
        script.call(
            Call::Rename {
                from: path.clone(),
                to: name("x/y/z"),
                flags: u32::MAX & !4,
            },
            0,
        );
        script.call(
            Call::Rename {
                from: path.clone(),
                to: name("x/y/z"),
                flags: 0,
            },
            0,
        );
        script.call(Call::Unlink { path: path.clone() }, 0);
        script.call(Call::Rmdir { path: path.clone() }, 0);
        script.call(
            Call::Mkdir {
                path,
                mode: u32::MAX,
            },
            0,
        );
    }
    for operation in script.operations.iter_mut().step_by(7) {
        operation.thread = u32::MAX - operation.thread;
        operation.end_ns = u64::MAX;
    }
    let (begin, before) = (Instant::now(), peak());
    let outcome = watched.replay(&script);
    println!("{outcome}{:?}", begin.elapsed());
    assert!(
        begin.elapsed() < Duration::from_secs(5),
        "{:?}",
        begin.elapsed()
    );
    // The largest that is ever in memory are two buffers of 2 MiB.
    let grown = peak() - before;
    assert!(grown < 64 << 20, "{grown}");
}

#[test]
fn files_larger_than_the_filesystem_are_refused() {
    let watched = Watched::new();
    let mut script = Script::default();
    let large = Opened {
        size: Some(1 << 60),
        ..opened(1, "large", O_RDWR)
    };
    script.call(Call::Open(large.clone()), 0);
    script.call(
        Call::Open(Opened {
            size: Some(u64::MAX),
            ..opened(2, "larger", 0)
        }),
        0,
    );
    let refused = replay(&script.recorded(), &settings(&watched.root()), |_| {});
    let text = refused.unwrap_err().to_string();
    let all = (1u128 << 60) + u128::from(u64::MAX);
    assert!(
        text.contains("root/larger: ") && text.contains(&all.to_string()),
        "{text}"
    );
    assert!(tree(&watched.root()).is_empty());
}

#[test]
fn too_many_threads_are_refused_and_many_are_not() {
    let watched = Watched::new();
    for (threads, is_refused) in [(4096, false), (4097, true)] {
        let mut script = Script::default();
        for thread in 0..threads {
            let path = name(&format!("d{threads}"));
            let result = if thread == 0 { 0 } else { -17 };
            script.call_of(u32::MAX - thread, Call::Mkdir { path, mode: 0o700 }, result);
        }
        let outcome = replay(&script.recorded(), &settings(&watched.root()), |_| {});
        match outcome {
            Ok(outcome) => assert!(!is_refused && outcome.made_and_same() == (4096, 4096)),
            Err(error) => assert!(
                is_refused && matches!(error, Error::Refused { .. }),
                "{error}"
            ),
        }
        fs::remove_dir_all(watched.root()).unwrap();
        fs::create_dir(watched.root()).unwrap();
    }
}

#[test]
fn deep_and_circular_names_end() {
    let mut script = Script::default();
    let deep = "a/".repeat(2000);
    for nth in 0..200 {
        script.open(nth, &format!("{deep}{nth}"), O_RDWR);
        script.call(
            Call::Rename {
                from: name("a"),
                to: name("a/a"),
                flags: 0,
            },
            0,
        );
    }
    for (target, path) in [
        ("l2", "l1"),
        ("l1/x/../../l1", "l2"),
        ("..", "up"),
        (".", "here"),
    ] {
        let target = target.as_bytes().to_vec();
        script.call(
            Call::Symlink {
                target,
                path: name(path),
            },
            0,
        );
    }
    script
        .open(1000, "l1/x", O_RDWR)
        .open(1001, "up/up/here/../f", O_RDWR);
    let begin = Instant::now();
    Start::of(&script.recorded());
    let watched = Watched::new();
    let _ = replay(&script.recorded(), &settings(&watched.root()), |_| {});
    assert_eq!(tree(&watched.beside()), watched.before);
    assert!(
        begin.elapsed() < Duration::from_secs(10),
        "{:?}",
        begin.elapsed()
    );
}

#[test]
fn the_root_of_the_folder_is_no_file() {
    let missing = replay(
        &Script::default().recorded(),
        &settings(Path::new("/nowhere")),
        |_| {},
    );
    assert!(matches!(missing, Err(Error::Io { .. })));
}
