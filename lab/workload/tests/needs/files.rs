// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files and names: the system calls of each mode, as strace sees them, and the files that exist afterwards.

use crate::common;

use std::collections::BTreeSet;
use std::fs;

use common::Call;
use mostrace_workload::{
    Caches, Choice, Error, FileSettings, FillSettings, Mode, NameOp, NameSettings, Pattern,
    Progress, run_file, run_fill, run_names,
};
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, tests};

pub fn suite() -> Suite {
    test_support::at_once(tests![
        each_mode_asks_for_its_own_durability needs common::STRACE,
        each_pattern_touches_each_record_once needs common::STRACE,
        every_pattern_works_in_every_mode,
        records_are_an_interval_apart,
        what_is_out_of_range_is_refused,
        names_are_made_changed_and_removed,
        a_volume_is_filled_and_emptied needs [Need::Loop],
    ])
}

const RECORDS: usize = 16;

fn settings(folder: &tempfile::TempDir) -> FileSettings {
    FileSettings {
        path: folder.path().to_owned(),
        file_size: 4096 * RECORDS as u64,
        caches: Caches::Keep,
        ..FileSettings::default()
    }
}

fn calls(settings: &FileSettings, set: &str) -> Vec<Call> {
    let text = serde_json::to_string(settings).unwrap();
    common::example_under_strace("file", &text, set).1
}

/// Compares the flags with which the file is opened, and the syncs after that.
fn each_mode_asks_for_its_own_durability() {
    let folder = tempfile::tempdir_in(".").unwrap();
    // The file is made beforehand, because that has syncs of its own.
    let made = FileSettings {
        prepare: true,
        ..settings(&folder)
    };
    let made = run_file(&made, &Progress::default()).unwrap().payload;
    assert_eq!((made.transactions, made.payload_bytes), (0, 0));
    let expected = [
        (Mode::Normal, "", "fsync", 1),
        (Mode::Osync, "O_SYNC", "fsync", 1),
        (Mode::Fsync, "", "fsync", RECORDS + 1),
        (Mode::Direct, "O_DIRECT", "fsync", 1),
        (Mode::SyncDirect, "O_SYNC|O_DIRECT", "fsync", 1),
        (Mode::Mmap, "", "MS_SYNC", 1),
        (Mode::MmapAsync, "", "MS_ASYNC", RECORDS),
        (Mode::MmapSync, "", "MS_SYNC", RECORDS + 1),
        (Mode::Fdatasync, "", "fdatasync", RECORDS),
    ];
    for (mode, flags, sync, count) in expected {
        let settings = FileSettings {
            mode,
            ..settings(&folder)
        };
        let calls = calls(&settings, "openat,fsync,fdatasync,msync");
        let opened = calls.iter().filter(|c| c.name == "openat");
        let opened = opened.map(|c| c.arguments.as_str());
        let opened: Vec<_> = opened.filter(|a| a.contains("test.dat0")).collect();
        // The first open only checks whether the file is long enough.
        let given: BTreeSet<&str> = opened[1].split(['|', ',', ' ']).collect();
        for flag in ["O_SYNC", "O_DIRECT"] {
            assert_eq!(
                given.contains(flag),
                flags.contains(flag),
                "{mode:?}: {opened:?}"
            );
        }
        let is = |c: &&Call| c.name == sync || c.arguments.ends_with(&format!("{sync})"));
        assert_eq!(
            calls.iter().filter(is).count(),
            count,
            "{mode:?}: {calls:?}"
        );
    }
}

fn each_pattern_touches_each_record_once() {
    let folder = tempfile::tempdir().unwrap();
    run_file(&settings(&folder), &Progress::default()).unwrap();
    for &pattern in Pattern::ALL {
        let settings = FileSettings {
            pattern,
            ..settings(&folder)
        };
        let call = if pattern.reads() {
            "pread64"
        } else {
            "pwrite64"
        };
        let calls = calls(&settings, call);
        let ours = calls.iter().filter(|c| c.path.ends_with("test.dat0"));
        let offset = |c: &Call| {
            c.arguments
                .rsplit(", ")
                .next()
                .unwrap()
                .trim_end_matches(')')
                .parse::<usize>()
                .unwrap()
        };
        let offsets: Vec<usize> = ours.map(offset).collect();
        let in_sequence: Vec<usize> = (0..RECORDS).map(|n| n * 4096).collect();
        let mut sorted = offsets.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, in_sequence, "{pattern:?}");
        assert_eq!(offsets == in_sequence, !pattern.is_random(), "{pattern:?}");
    }
}

fn every_pattern_works_in_every_mode() {
    // The folder is not in /tmp, which may be a filesystem without O_DIRECT.
    for &pattern in Pattern::ALL {
        for &mode in Mode::ALL {
            let folder = tempfile::tempdir_in(".").unwrap();
            let settings = FileSettings {
                pattern,
                mode,
                threads: 2,
                ..settings(&folder)
            };
            let outcome = run_file(&settings, &Progress::default()).unwrap();
            let bytes = 2 * 4096 * RECORDS as u64;
            let stored = if pattern.reads() { 0 } else { bytes };
            assert_eq!(
                outcome.payload.payload_bytes, stored,
                "{pattern:?} {mode:?}"
            );
            assert_eq!(outcome.operations.len(), 2 * RECORDS);
            let contents = |n| fs::read(folder.path().join(format!("test.dat{n}"))).unwrap();
            let (first, second) = (contents(0), contents(1));
            assert_eq!(first.len() as u64, bytes / 2, "{pattern:?} {mode:?}");
            let pieces = |contents: &[u8]| -> usize {
                let pieces: BTreeSet<&[u8]> = contents.chunks(4096).collect();
                pieces.len()
            };
            // All records of a thread have the same contents, which differ between threads.
            assert_eq!(
                [pieces(&first), pieces(&second)],
                [1, 1],
                "{pattern:?} {mode:?}"
            );
            assert_eq!(first == second, pattern.reads(), "{pattern:?} {mode:?}");
        }
    }
}

fn records_are_an_interval_apart() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let settings = FileSettings {
        interval_ms: 5,
        ..settings(&folder)
    };
    let payload = run_file(&settings, &Progress::default()).unwrap().payload;
    let least = 5_000_000 * (RECORDS as u64 - 1);
    assert!(payload.elapsed_ns >= least, "{}", payload.elapsed_ns);
}

fn what_is_out_of_range_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = [
        FileSettings {
            threads: 0,
            ..settings(&folder)
        },
        FileSettings {
            file_size: 4095,
            ..settings(&folder)
        },
        FileSettings {
            overlap: 100,
            ..settings(&folder)
        },
        FileSettings {
            mode: Mode::Direct,
            record_size: 1000,
            ..settings(&folder)
        },
        FileSettings {
            record_size: 0,
            ..settings(&folder)
        },
    ];
    for wrong in wrong {
        let error = run_file(&wrong, &Progress::default()).unwrap_err();
        assert!(matches!(error, Error::Setting(_)), "{error}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

fn names_are_made_changed_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let left = || {
        let names = fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<String> = names
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let run = |op, prepare| {
        let settings = NameSettings {
            path: folder.path().to_owned(),
            op,
            count: 3,
            prepare,
        };
        run_names(&settings, &Progress::default()).map(|outcome| outcome.payload.transactions)
    };
    assert_eq!(run(NameOp::Create, false).unwrap(), 3);
    assert_eq!(left(), ["name-00000000", "name-00000001", "name-00000002"]);
    let error = run(NameOp::Create, false).unwrap_err().to_string();
    assert!(error.contains("name-00000000: File exists"), "{error}");
    assert_eq!(run(NameOp::Unlink, false).unwrap(), 3);
    assert_eq!(left(), [""; 0]);
    assert_eq!(run(NameOp::Rename, true).unwrap(), 3);
    assert_eq!(run(NameOp::Rename, false).unwrap(), 3);
    assert_eq!(
        left(),
        [
            "name-00000000.new",
            "name-00000001.new",
            "name-00000002.new"
        ]
    );
    assert!(run(NameOp::Unlink, false).is_err());
}

fn a_volume_is_filled_and_emptied() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let settings = FillSettings {
        path: disk.mount_point().to_owned(),
        percent: 60,
        probes: 20,
        seed: 1,
    };
    let filled = run_fill(&settings, &Progress::default()).unwrap();
    let [before, after] = filled.used_percent;
    assert!(
        before < 50 && (59..=61).contains(&after),
        "{before} {after}"
    );
    assert!(filled.before.is_some() && filled.after.is_some());
    assert_eq!(
        filled.after_fstrim.is_some(),
        filled.fstrim.contains("trimmed"),
        "{}",
        filled.fstrim
    );
    let left = fs::read_dir(disk.mount_point()).unwrap();
    let left: Vec<_> = left.map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["lost+found"]);
}
