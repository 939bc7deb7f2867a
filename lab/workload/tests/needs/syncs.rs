// SPDX-License-Identifier: MIT OR Apache-2.0
//! Syncs of one transaction as strace sees them, compared with SQLite's own `sync2.test` and with strace on SQLite
//! 3.40.

use crate::common;

use mostrace_workload::{Existing, Journal, Op, Outcome, Progress, Settings, Sync};
use test_support::{Suite, tests};

pub fn suite() -> Suite {
    test_support::at_once(tests![
        syncs_of_one_insertion needs common::STRACE,
        a_checkpoint_syncs_the_wal_and_the_database needs common::STRACE,
        an_exclusive_lock_syncs_the_directory_once needs common::STRACE,
    ])
}

/// Runs the workload in this process.
fn run(settings: &Settings) -> mostrace_workload::Result<Outcome> {
    mostrace_workload::run(settings, &Progress::default())
}

/// Number of syncs of the directory, of the journal or WAL, and of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Syncs {
    directory: usize,
    journal: usize,
    database: usize,
}

const fn syncs(directory: usize, journal: usize, database: usize) -> Syncs {
    Syncs {
        directory,
        journal,
        database,
    }
}

/// Counts the syncs of `transactions` insertions into a database made beforehand.
fn count(settings: &Settings, transactions: u64) -> Syncs {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let settings = Settings {
        path,
        transactions,
        ..settings.clone()
    };
    run(&Settings {
        prepare: true,
        checkpoint: true,
        ..settings.clone()
    })
    .unwrap();
    let measured = Settings {
        existing: Existing::Keep,
        ..settings
    };
    let (outcome, calls) = common::run_under_strace(
        &measured,
        "fsync,fdatasync,sync,syncfs,sync_file_range,msync",
    );
    let sync_call = &outcome.payload.settings["sync_call"];
    assert!(
        calls.iter().all(|call| call.name == *sync_call),
        "{calls:?} are not all {sync_call}"
    );
    let of = |wanted: &[&str]| {
        let folder = folder.path().to_str().unwrap();
        let suffix = |path: &str| path.strip_prefix(folder).unwrap_or("?").to_owned();
        calls
            .iter()
            .filter(|call| wanted.contains(&suffix(&call.path).as_str()))
            .count()
    };
    let syncs = syncs(
        of(&[""]),
        of(&["/x.db-journal", "/x.db-wal"]),
        of(&["/x.db"]),
    );
    assert_eq!(
        calls.len(),
        syncs.directory + syncs.journal + syncs.database,
        "{calls:?}"
    );
    syncs
}

fn syncs_of_one_insertion() {
    // The first transaction, and one that follows.
    let every = |syncs: Syncs| (syncs, syncs);
    let none = every(syncs(0, 0, 0));
    let expected = [
        (Journal::Delete, Sync::Full, every(syncs(1, 2, 1))),
        (Journal::Delete, Sync::Normal, every(syncs(1, 1, 1))),
        (Journal::Delete, Sync::Extra, every(syncs(2, 2, 1))),
        (Journal::Delete, Sync::Off, none),
        (Journal::Truncate, Sync::Full, every(syncs(1, 3, 1))),
        (Journal::Truncate, Sync::Normal, every(syncs(1, 1, 1))),
        (Journal::Truncate, Sync::Off, none),
        (Journal::Persist, Sync::Full, every(syncs(1, 3, 1))),
        (Journal::Persist, Sync::Normal, every(syncs(1, 2, 1))),
        (Journal::Persist, Sync::Off, none),
        // The first transaction of a WAL also syncs its header and the directory.
        (Journal::Wal, Sync::Full, (syncs(1, 2, 0), syncs(0, 1, 0))),
        (Journal::Wal, Sync::Normal, (syncs(1, 1, 0), syncs(0, 0, 0))),
        (Journal::Wal, Sync::Off, none),
        (Journal::Memory, Sync::Full, every(syncs(0, 0, 1))),
    ];
    for (journal, sync, (first, next)) in expected {
        let settings = Settings {
            journal,
            sync,
            checkpoint: false,
            ..Settings::default()
        };
        assert_eq!(
            count(&settings, 1),
            first,
            "first transaction, {journal:?} {sync:?}"
        );
        let four = syncs(
            first.directory + 3 * next.directory,
            first.journal + 3 * next.journal,
            first.database + 3 * next.database,
        );
        assert_eq!(
            count(&settings, 4),
            four,
            "four transactions, {journal:?} {sync:?}"
        );
    }
}

fn a_checkpoint_syncs_the_wal_and_the_database() {
    let without = Settings {
        journal: Journal::Wal,
        checkpoint: false,
        ..Settings::default()
    };
    let with = Settings {
        checkpoint: true,
        ..without.clone()
    };
    let (without, with) = (count(&without, 3), count(&with, 3));
    assert_eq!(
        with,
        syncs(without.directory, without.journal + 1, without.database + 1)
    );
}

fn an_exclusive_lock_syncs_the_directory_once() {
    let exclusive = mostrace_workload::Locking::Exclusive;
    let settings = Settings {
        journal: Journal::Truncate,
        locking: exclusive,
        op: Op::Insert,
        ..Settings::default()
    };
    assert_eq!(
        (count(&settings, 1).directory, count(&settings, 5).directory),
        (1, 1)
    );
}
