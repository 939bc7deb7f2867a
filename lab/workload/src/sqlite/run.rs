// SPDX-License-Identifier: MIT OR Apache-2.0
//! The three phases of a run.

use super::database::Database;
use super::engine::Engine;
use crate::measure::{Caches, Progress, drop_caches, in_threads, timed};
use crate::outcome::Task;
use crate::{Choice, Existing, Op, Outcome, Result, Settings};

/// Runs a workload; `progress` counts transactions. All databases are opened before the threads start and closed after
/// they end, so that threads compete only in their transactions.
///
/// # Errors
///
/// Returns the first error of any thread; the other threads finish their work. Committed transactions stay.
pub fn run(settings: &Settings, progress: &Progress) -> Result<Outcome> {
    settings.check()?;
    let engine = Engine::new(settings.library.as_deref())?;
    let done = if settings.prepare {
        preparation(settings)
    } else {
        settings.clone()
    };
    let (setup, databases) = timed(|| open(&done, &engine))?;
    let dropped = match settings.caches {
        Caches::Keep => None,
        Caches::Drop => Some(drop_caches().is_ok()),
    };
    let (databases, measured) = in_threads(databases, progress, |database, stopwatch| {
        database.transactions(&done, stopwatch)
    })?;
    let (finish, ()) = timed(|| {
        databases
            .into_iter()
            .try_for_each(|database| database.finish(&done))
    })?;
    let mut task = task(settings, &done, &engine);
    if let Some(dropped) = dropped {
        let told = ("caches_dropped".to_owned(), dropped.to_string());
        task.settings.extend([told]);
    }
    Ok(Outcome::new(task, [setup, finish], measured))
}

/// The number of bytes counted for a creation_date, whatever width SQLite stores it in.
const DATE_BYTES: u64 = 8;

/// Describes a run. `asked` holds the user's settings; `done` holds those that were run, which differ when only
/// preparing.
///
/// The payload consists of the column values: for an insertion or an update, the bytes of the Value and 8 for the
/// creation_date. The id is not counted because SQLite chooses it. A deletion stores nothing.
fn task(asked: &Settings, done: &Settings, engine: &Engine) -> Task {
    let count = done.transactions.saturating_mul(u64::from(done.threads));
    let row_bytes = match done.op {
        Op::Insert | Op::Update => DATE_BYTES.saturating_add(u64::from(done.value_size)),
        Op::Delete => 0,
    };
    let what = match asked.prepare {
        true => "prepare",
        false => asked.op.name(),
    };
    let (version, call) = (engine.version(), engine.sync_call());
    let (journal, sync) = (asked.journal.name(), asked.sync.name());
    let mut settings = asked.table();
    engine.describe(&mut settings);
    Task {
        workload: "sqlite",
        heading: format!(
            "SQLite {version} ({call}), {what}, journal {journal}, synchronous {sync}"
        ),
        payload_bytes: count
            .saturating_mul(done.per_transaction)
            .saturating_mul(row_bytes),
        count,
        settings,
    }
}

/// Returns the settings that prepare a database: one transaction that inserts the rows that a later run will change.
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

fn open(settings: &Settings, engine: &Engine) -> Result<Vec<Database>> {
    let paths = settings.databases();
    paths
        .iter()
        .zip(0..)
        .map(|(path, thread)| Database::open(path, thread, settings, engine))
        .collect()
}
