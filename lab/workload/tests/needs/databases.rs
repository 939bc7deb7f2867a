// SPDX-License-Identifier: MIT OR Apache-2.0
//! Contents of the databases after a run, queried with the sqlite3 command; and settings that are refused.

use crate::common;

use std::fs;
use std::path::Path;

use common::sqlite3;
use mostrace_workload::{
    AutoVacuum, Choice, Error, Existing, Journal, Op, Outcome, Progress, Settings, Sync,
    write_payload,
};
use test_support::{Suite, tests};

pub fn suite() -> Suite {
    test_support::at_once(tests![
        every_journal_leaves_a_sound_database needs [common::SQLITE3],
        updates_change_rows_and_deletions_remove_the_first needs [common::SQLITE3],
        each_thread_has_its_own_database needs [common::SQLITE3],
        the_same_seed_makes_the_same_file,
        a_wal_without_a_checkpoint_stays needs [common::SQLITE3],
        what_is_there_is_refused_kept_or_overwritten needs [common::SQLITE3],
        errors_are_one_line_and_name_the_file,
        the_payload_file_is_whole_and_in_the_bundles_shape,
    ])
}

/// Runs the workload in this process.
fn run(settings: &Settings) -> mostrace_workload::Result<Outcome> {
    mostrace_workload::run(settings, &Progress::default())
}

fn settings(folder: &Path) -> Settings {
    Settings {
        path: folder.join("x.db"),
        sync: Sync::Off,
        transactions: 40,
        ..Settings::default()
    }
}

fn every_journal_leaves_a_sound_database() {
    for &journal in Journal::ALL {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings {
            journal,
            page_size: 1024,
            auto_vacuum: AutoVacuum::Incremental,
            per_transaction: 5,
            ..settings(folder.path())
        };
        run(&settings).unwrap();
        let answers = sqlite3(
            &settings.path,
            "PRAGMA integrity_check; PRAGMA page_size; PRAGMA auto_vacuum; PRAGMA journal_mode;
             SELECT count(*), min(id), max(id), min(length(Value)), max(length(Value)), count(DISTINCT Value),
                    count(DISTINCT creation_date) FROM item",
        );
        // Only WAL is stored in the file; other modes belong to a connection.
        let mode = if journal == Journal::Wal {
            "wal"
        } else {
            "delete"
        };
        assert_eq!(
            answers,
            ["ok", "1024", "2", mode, "200|1|200|100|100|200|200"],
            "{journal:?}"
        );
        let left = |suffix: &str| folder.path().join(format!("x.db{suffix}")).exists();
        let persists = matches!(journal, Journal::Persist | Journal::Truncate);
        assert_eq!(
            [left("-journal"), left("-wal"), left("-shm")],
            [persists, false, false],
            "{journal:?}"
        );
    }
}

fn updates_change_rows_and_deletions_remove_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path());
    run(&Settings {
        prepare: true,
        op: Op::Delete,
        ..settings.clone()
    })
    .unwrap();
    let values = || {
        sqlite3(
            &settings.path,
            "SELECT Value, creation_date FROM item ORDER BY id",
        )
    };
    let mut before = values();
    assert_eq!(before.len(), 40);
    // The seed is the same each time: SQLite would write nothing if the bytes were the same.
    for _ in 0..3 {
        run(&Settings {
            op: Op::Update,
            transactions: 30,
            ..settings.clone()
        })
        .unwrap();
        let after = values();
        let differ = |(old, new): (&String, &String)| {
            let (old, new) = (old.split_once('|').unwrap(), new.split_once('|').unwrap());
            [old.0 != new.0, old.1 != new.1]
        };
        let changed: Vec<[bool; 2]> = before.iter().zip(&after).map(differ).collect();
        assert_eq!(
            changed,
            [[[true; 2]; 30].as_slice(), &[[false; 2]; 10]].concat()
        );
        before = after;
    }
    // With more updates than rows, the first rows are updated again.
    run(&Settings {
        op: Op::Update,
        transactions: 45,
        ..settings.clone()
    })
    .unwrap();
    run(&Settings {
        op: Op::Delete,
        transactions: 8,
        per_transaction: 3,
        ..settings.clone()
    })
    .unwrap();
    assert_eq!(
        sqlite3(
            &settings.path,
            "PRAGMA integrity_check; SELECT count(*), min(id) FROM item"
        ),
        ["ok", "16|25"]
    );
    let error = run(&Settings {
        op: Op::Delete,
        transactions: 17,
        ..settings
    })
    .unwrap_err();
    assert!(
        matches!(
            error,
            Error::TooFewRows {
                have: 16,
                need: 17,
                ..
            }
        ),
        "{error}"
    );
}

fn each_thread_has_its_own_database() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        path: folder.path().to_owned(),
        threads: 3,
        ..settings(folder.path())
    };
    let outcome = run(&settings).unwrap();
    assert_eq!(
        (outcome.payload.transactions, outcome.operations.len()),
        (120, 120)
    );
    let mut first = Vec::new();
    for thread in 0..3 {
        let path = folder.path().join(format!("mostrace-{thread}.db"));
        assert_eq!(
            outcome.payload.settings[&format!("database.{thread}")],
            path.display().to_string()
        );
        assert_eq!(
            sqlite3(&path, "PRAGMA integrity_check; SELECT count(*) FROM item"),
            ["ok", "40"]
        );
        first.extend(sqlite3(&path, "SELECT Value FROM item WHERE id = 1"));
    }
    first.sort();
    first.dedup();
    assert_eq!(first.len(), 3, "threads stored the same values");
}

fn the_same_seed_makes_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path());
    let bytes = |seed| {
        run(&Settings {
            seed,
            existing: Existing::Overwrite,
            ..settings.clone()
        })
        .unwrap();
        fs::read(&settings.path).unwrap()
    };
    let one = bytes(1);
    assert!(one == bytes(1));
    assert!(one != bytes(2));
}

fn a_wal_without_a_checkpoint_stays() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        journal: Journal::Wal,
        checkpoint: false,
        wal_autocheckpoint: 0,
        ..settings(folder.path())
    };
    run(&settings).unwrap();
    // Each of the 40 transactions has at least one frame, behind a header of 32 bytes.
    let wal = fs::metadata(folder.path().join("x.db-wal")).unwrap().len();
    assert!(wal > 32 + 40 * 4120, "{wal}");
    assert_eq!(sqlite3(&settings.path, "SELECT count(*) FROM item"), ["40"]);
}

fn what_is_there_is_refused_kept_or_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path());
    let with = |existing| Settings {
        existing,
        ..settings.clone()
    };
    let rows = || sqlite3(&settings.path, "SELECT count(*) FROM item");
    run(&settings).unwrap();
    assert!(matches!(run(&settings).unwrap_err(), Error::Exists(_)));
    assert!(matches!(
        run(&Settings {
            prepare: true,
            ..settings.clone()
        })
        .unwrap_err(),
        Error::Exists(_)
    ));
    run(&with(Existing::Keep)).unwrap();
    assert_eq!(rows(), ["80"]);
    run(&with(Existing::Overwrite)).unwrap();
    assert_eq!(rows(), ["40"]);
    let error = run(&Settings {
        page_size: 1024,
        ..with(Existing::Keep)
    })
    .unwrap_err();
    assert!(
        matches!(
            error,
            Error::Pragma {
                pragma: "page_size",
                ..
            }
        ),
        "{error}"
    );
    fs::write(&settings.path, "a letter that nobody wants to lose").unwrap();
    assert!(matches!(
        run(&with(Existing::Overwrite)).unwrap_err(),
        Error::NotDatabase(_)
    ));
    assert!(
        fs::read_to_string(&settings.path)
            .unwrap()
            .starts_with("a letter")
    );
}

fn errors_are_one_line_and_name_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let base = settings(folder.path());
    let message = |settings: &Settings| run(settings).unwrap_err().to_string();
    let missing = message(&Settings {
        path: folder.path().join("no/x.db"),
        ..base.clone()
    });
    assert!(missing.contains("/no: No such file"), "{missing}");
    let update = message(&Settings {
        op: Op::Update,
        ..base.clone()
    });
    assert!(
        update.contains("x.db: 0 rows") && update.contains("--prepare"),
        "{update}"
    );
    fs::write(
        &base.path,
        "not a database, but long enough to be taken for one".repeat(20),
    )
    .unwrap();
    let foreign = message(&Settings {
        existing: Existing::Keep,
        ..base.clone()
    });
    assert!(
        foreign.contains("x.db: ") && foreign.contains("not a database"),
        "{foreign}"
    );
    let proc = message(&Settings {
        path: "/proc/x.db".into(),
        ..base.clone()
    });
    assert!(proc.contains("/proc/x.db: open: unable to open"), "{proc}");
    let full = message(&Settings {
        path: "/dev/full".into(),
        existing: Existing::Keep,
        ..base.clone()
    });
    assert!(full.contains("/dev/full: "), "{full}");
    for text in [missing, update, foreign, proc, full] {
        assert!(!text.contains('\n'), "{text}");
    }
    for wrong in [
        Settings {
            threads: 0,
            ..base.clone()
        },
        Settings {
            per_transaction: 0,
            ..base.clone()
        },
        Settings {
            page_size: 1000,
            ..base.clone()
        },
        Settings {
            transactions: u64::MAX,
            ..base.clone()
        },
    ] {
        assert!(matches!(run(&wrong).unwrap_err(), Error::Setting(_)));
    }
}

fn the_payload_file_is_whole_and_in_the_bundles_shape() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path());
    let outcome = run(&settings).unwrap();
    let path = folder.path().join("payload.json");
    write_payload(&outcome.payload, &path).unwrap();
    let read: mostrace_bundle::manifest::Payload =
        serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(read, outcome.payload);
    assert_eq!((read.workload.as_str(), read.transactions), ("sqlite", 40));
    assert!(read.elapsed_ns > 0);
    assert_eq!(
        read.settings["sqlite_version"],
        mostrace_workload::sqlite_version()
    );
    assert!(write_payload(&outcome.payload, &folder.path().join("no/payload.json")).is_err());
    let names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
}
