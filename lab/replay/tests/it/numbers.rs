// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers that no application has: the replay ends at once, and its memory does not grow with them.

use crate::common;

use std::env;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{O_CREAT, O_DIRECTORY, O_RDWR, Script, Watched, name, opened};
use mostrace_replay::{Call, Change, FileCall, FileId, Opened, Range, Target};

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

/// Looks at the memory of its process, and so runs once more in one of its own.
#[test]
fn numbers_cost_nothing() {
    const ALONE: &str = "MOSTRACE_REPLAY_ALONE";
    if env::var_os(ALONE).is_some() {
        return cost_nothing();
    }
    let test = Command::new(env::current_exe().unwrap())
        .args(["--exact", "numbers::numbers_cost_nothing", "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&test.stdout);
    let ran = test.status.success() && said.contains("1 passed");
    assert!(ran, "{said}{}", String::from_utf8_lossy(&test.stderr));
}

fn cost_nothing() {
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
            script.call(Call::Of(file, FileCall::Write { offset, bytes }), result);
            script.call(Call::Of(file, FileCall::Read { offset, bytes }), result);
            let from = Some(file);
            script.call(
                Call::Of(
                    file,
                    FileCall::Copy {
                        from,
                        from_offset: offset,
                        offset,
                        bytes,
                    },
                ),
                result,
            );
        }
        for bytes in [0, 1, 1 << 31, 1 << 63, u64::MAX] {
            let range = Range {
                offset: offset.unwrap_or(7),
                bytes,
            };
            script.call(Call::Of(file, FileCall::Store(range)), 0);
            script.call(Call::Of(file, FileCall::Msync(range, u32::MAX)), 0);
            script.call(Call::Of(file, FileCall::SyncRange(range, u32::MAX)), 0);
            script.call(Call::Of(file, FileCall::Fadvise(range, u32::MAX)), 0);
            script.call(Call::Of(file, FileCall::Fallocate(range, u32::MAX)), 0);
            let from_offset = range.bytes;
            script.call(
                Call::Of(
                    file,
                    FileCall::Clone {
                        from: file,
                        from_offset,
                        range,
                    },
                ),
                0,
            );
            let target = Target::File(file);
            script.call(
                Call::Change(
                    target.clone(),
                    Change::Setxattr {
                        name: vec![0; 300],
                        bytes,
                        flags: 9,
                    },
                ),
                0,
            );
            script.call(Call::Change(target, Change::Truncate(bytes)), 0);
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
                flags: !4,
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
        script.call(Call::Unlink(path.clone()), 0);
        script.call(Call::Rmdir(path.clone()), 0);
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
        begin.elapsed() < Duration::from_secs(60),
        "{:?}",
        begin.elapsed()
    );
    // The largest that is ever in memory are two buffers of 2 MiB.
    let grown = peak() - before;
    assert!(grown < 64 << 20, "{grown}");
}
