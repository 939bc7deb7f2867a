// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings that want to harm: nothing outside the folder changes, memory stays bounded, and the replay ends at once.

use crate::common;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use common::{O_CREAT, O_RDWR, O_TRUNC, Script, Watched, name, opened, settings, tree};
use mostrace_replay::{
    Call, Change, Error, FileCall, FileId, Opened, Replay, Start, Target, replay,
};

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
            script.call(Call::Change(by_path.clone(), Change::Truncate(1)), 0);
            script.call(Call::Change(by_path.clone(), Change::Chmod(0o777)), 0);
            script.call(
                Call::Change(by_path.clone(), Change::Chown { uid: 1, gid: 1 }),
                0,
            );
            script.call(Call::Change(by_path.clone(), Change::Utimes), 0);
            let name = b"user.x".to_vec();
            let set = Call::Change(
                by_path,
                Change::Setxattr {
                    name,
                    bytes: 10,
                    flags: 0,
                },
            );
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
        for follow in [false, true] {
            script.call(
                Call::Link {
                    from: Target::Path(inside("file")),
                    to: name(&format!("mine{nth}{follow}")),
                    follow,
                },
                0,
            );
            script.call(
                Call::Link {
                    from: Target::Path(name("link0")),
                    to: inside("hard"),
                    follow,
                },
                0,
            );
        }
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
        script.call(Call::Unlink(inside("file")), 0);
        script.call(Call::Rmdir(inside("folder")), 0);
    }
    let outcome = watched.replay(&script);
    assert!(outcome.calls["symlink"].same >= 8, "{outcome}");
    // The test would see it: the same without the protection does change the folder beside.
    let link = watched.root().join("link0");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    fs::write(link.join("through"), "").unwrap();
    assert!(!watched.is_untouched());
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
    script.call(Call::Unlink(name("a/file")), 0);
    let (recorded, settings) = (script.recorded(), settings(&watched.root()));
    let replay = Replay::prepare(&recorded, &settings).unwrap();
    fs::remove_dir(watched.root().join("a")).unwrap();
    std::os::unix::fs::symlink("../beside", watched.root().join("a")).unwrap();
    let outcome = replay.run(|_| {}).unwrap();
    assert!(watched.is_untouched(), "{outcome}");
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
            Call::Of(
                FileId(file),
                FileCall::Read {
                    offset: None,
                    bytes: 1,
                },
            ),
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
    assert!(watched.is_untouched());
    assert!(
        begin.elapsed() < Duration::from_secs(60),
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
