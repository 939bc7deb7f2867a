// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes passed to write(): the kernel's counter compared with strace, and with numbers measured on SQLite 3.40.

use crate::common;

use mostrace_workload::{Existing, Journal, Op, Outcome, Progress, Settings, Sync};
use test_support::{Need, Suite, tests};

pub fn suite() -> Suite {
    test_support::at_once(tests![
        file_bytes_are_what_strace_sees needs common::STRACE,
        bytes_of_one_insertion needs [Need::IoCounters],
        every_update_is_written needs [Need::IoCounters],
        payload_is_the_values_and_the_dates needs [common::SQLITE3],
    ])
}

/// Runs the workload in this process.
fn run(settings: &Settings) -> mostrace_workload::Result<Outcome> {
    mostrace_workload::run(settings, &Progress::default())
}

const WRITES: &str = "write,writev,pwrite64,pwritev,pwritev2,sendfile,copy_file_range";

/// Checks that the counter equals what strace saw, call by call.
fn check(settings: &Settings) {
    let (outcome, calls) = common::run_under_strace(settings, WRITES);
    let folder = settings.path.parent().unwrap().to_str().unwrap();
    let ours = || calls.iter().filter(|call| call.path.starts_with(folder));
    assert!(outcome.payload.file_bytes > 0);
    assert_eq!(
        outcome.payload.file_bytes,
        ours().map(|call| call.result).sum::<u64>(),
        "{settings:?}"
    );
    assert_eq!(
        outcome.payload.settings["syscw"],
        ours().count().to_string(),
        "{settings:?}"
    );
}

fn file_bytes_are_what_strace_sees() {
    for journal in [
        Journal::Delete,
        Journal::Truncate,
        Journal::Persist,
        Journal::Wal,
        Journal::Memory,
        Journal::Off,
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let settings = Settings {
            path,
            journal,
            sync: Sync::Off,
            transactions: 50,
            ..Settings::default()
        };
        check(&settings);
        let over = Existing::Overwrite;
        check(&Settings {
            existing: over,
            prepare: true,
            op: Op::Delete,
            ..settings.clone()
        });
        check(&Settings {
            op: Op::Update,
            transactions: 20,
            per_transaction: 3,
            ..settings.clone()
        });
        check(&Settings {
            op: Op::Delete,
            ..settings.clone()
        });
        check(&Settings {
            existing: over,
            threads: 3,
            ..settings
        });
    }
}

/// 100 insertions of 100 bytes, in 4 KiB pages with autovacuum and synchronous FULL. With a rollback journal an
/// insertion writes a header sector, two pages with number and checksum, the record count, and two pages of the
/// database; splits of a leaf add to it: 512 + 2 · (4096 + 8) + 12 + 2 · 4096 = 16,924. With WAL it writes one frame:
/// 24 + 4096.
fn bytes_of_one_insertion() {
    let expected = [
        (Journal::Delete, 17_211),
        (Journal::Truncate, 17_211),
        (Journal::Persist, 17_239),
        (Journal::Wal, 4_408),
    ];
    for (journal, bytes) in expected {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings {
            path: folder.path().join("x.db"),
            journal,
            transactions: 100,
            // This runs in a process of its own, because other tests write at the same time.
            ..Settings::default()
        };
        let written = common::run(&settings).transactions.written.unwrap().bytes;
        assert_eq!((written + 50) / 100, bytes, "{journal:?}: {written}");
    }
}

/// An update or a deletion writes as much as an insertion without a split: one frame of the WAL. Repeated updates, and
/// updates that start again with the first row, are written too.
fn every_update_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        path: folder.path().join("x.db"),
        journal: Journal::Wal,
        sync: Sync::Off,
        op: Op::Update,
        transactions: 30,
        ..Settings::default()
    };
    common::run(&Settings {
        prepare: true,
        ..settings.clone()
    });
    for transactions in [30, 30, 70, 5, 30] {
        let outcome = common::run(&Settings {
            transactions,
            ..settings.clone()
        });
        let written = outcome.transactions.written.unwrap();
        // The WAL begins with a header of 32 bytes, which is a separate write.
        assert_eq!(written.bytes, 32 + transactions * (24 + 4096));
    }
}

fn payload_is_the_values_and_the_dates() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        path: folder.path().join("x.db"),
        sync: Sync::Off,
        transactions: 7,
        per_transaction: 3,
        value_size: 50,
        ..Settings::default()
    };
    let bytes = |settings: &Settings| run(settings).unwrap().payload.payload_bytes;
    assert_eq!(bytes(&settings), 21 * 58);
    assert_eq!(
        bytes(&Settings {
            op: Op::Update,
            ..settings.clone()
        }),
        21 * 58
    );
    assert_eq!(
        bytes(&Settings {
            op: Op::Delete,
            ..settings.clone()
        }),
        0
    );
    run(&Settings {
        existing: Existing::Overwrite,
        ..settings.clone()
    })
    .unwrap();
    let sum = common::sqlite3(
        &settings.path,
        "SELECT sum(length(CAST(Value AS BLOB))) + 8 * count(creation_date) FROM item",
    );
    assert_eq!(sum, [(21 * 58).to_string()]);
}
