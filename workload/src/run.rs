// SPDX-License-Identifier: MIT OR Apache-2.0
//! The three phases of a run.

use std::time::Instant;

use crate::database::Database;
use crate::{Error, Existing, Op, Outcome, Phase, Result, Settings, Written};

/// Runs a workload. All databases are opened first and closed last, so that threads meet only in their transactions.
///
/// # Errors
///
/// The first error of any thread; the others run to their end. What was committed stays.
pub fn run(settings: &Settings) -> Result<Outcome> {
    settings.check()?;
    let done = if settings.prepare {
        preparation(settings)
    } else {
        settings.clone()
    };
    let (setup, databases) = timed(|| open(&done))?;
    let (transactions, (databases, latencies_ns)) = timed(|| work(databases, &done))?;
    let (finish, ()) = timed(|| {
        databases
            .into_iter()
            .try_for_each(|database| database.finish(&done))
    })?;
    Ok(Outcome::new(
        settings,
        &done,
        [setup, transactions, finish],
        latencies_ns,
    ))
}

/// Preparing is a run of its own: one transaction that inserts what a later run will touch.
fn preparation(settings: &Settings) -> Settings {
    let rows = match settings.op {
        Op::Insert => 0,
        Op::Update | Op::Delete => settings.rows(),
    };
    let existing = match settings.existing {
        Existing::Keep => Existing::Refuse,
        other => other,
    };
    Settings {
        op: Op::Insert,
        existing,
        transactions: rows.min(1),
        per_transaction: rows.max(1),
        ..settings.clone()
    }
}

fn open(settings: &Settings) -> Result<Vec<Database>> {
    let paths = settings.databases();
    paths
        .iter()
        .zip(0..)
        .map(|(path, thread)| Database::open(path, thread, settings))
        .collect()
}

/// One thread per database.
fn work(mut databases: Vec<Database>, settings: &Settings) -> Result<(Vec<Database>, Vec<u64>)> {
    let results: Vec<Result<Vec<u64>>> = std::thread::scope(|scope| {
        let start = |database| scope.spawn(|| Database::transactions(database, settings));
        let threads: Vec<_> = databases.iter_mut().map(start).collect();
        let panicked = || Error::Setting("a thread of the workload panicked".to_owned());
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(panicked())))
            .collect()
    });
    let latencies = results.into_iter().collect::<Result<Vec<_>>>()?.concat();
    Ok((databases, latencies))
}

/// Runs one phase between two readings of the clock and of the kernel's counters.
fn timed<T>(phase: impl FnOnce() -> Result<T>) -> Result<(Phase, T)> {
    let before = Written::now();
    let start = Instant::now();
    let value = phase()?;
    let elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let written = Written::now()
        .zip(before)
        .map(|(now, before)| now.since(before));
    Ok((
        Phase {
            elapsed_ns,
            written,
        },
        value,
    ))
}
