// SPDX-License-Identifier: MIT OR Apache-2.0
//! The phases of a run.

use std::collections::BTreeMap;
use std::fs;

use super::Mobibench;
use super::database::Databases;
use crate::measure::{Progress, drop_caches, in_threads, timed};
use crate::outcome::{Outcome, Task};
use crate::sqlite::Engine;
use crate::{Choice, Error, Op, Result, run_file};

/// Length of the value that an insertion or an update stores in each row, bytes.
const VALUE_BYTES: u64 = 100;

/// Runs the workload; `progress` counts records or transactions. The checkpoint of the WAL belongs to the measured
/// phase, as in Mobibench.
///
/// # Errors
/// Returns an error if an option's number has no meaning, or the first error of any thread.
pub fn run_mobibench(options: &Mobibench, progress: &Progress) -> Result<Outcome> {
    fs::create_dir_all(&options.path).map_err(Error::io(&options.path))?;
    match options.op()? {
        Some(op) => transactions(options, op, progress),
        None => run_file(&options.file()?, progress),
    }
}

fn transactions(options: &Mobibench, op: Op, progress: &Progress) -> Result<Outcome> {
    let engine = Engine::new(options.library.as_deref())?;
    let threads = options.threads.clamp(1, 100);
    let open = |thread| Databases::open(options, op, &engine, thread);
    let (setup, databases) = timed(|| (0..threads).map(open).collect::<Result<Vec<_>>>())?;
    let dropped = drop_caches().is_ok();
    let (databases, measured) = in_threads(databases, progress, Databases::work)?;
    let (finish, ()) = timed(|| databases.into_iter().try_for_each(Databases::finish))?;
    let task = task(options, op, &engine, dropped)?;
    Ok(Outcome::new(task, [setup, finish], measured))
}

fn task(options: &Mobibench, op: Op, engine: &Engine, dropped: bool) -> Result<Task> {
    let threads = u64::from(options.threads.clamp(1, 100));
    let count = (options.transactions / threads).saturating_mul(threads);
    let (tables, databases) = (options.tables.clamp(1, 20), options.databases.clamp(1, 20));
    let rows = u64::from(tables).saturating_mul(databases.into());
    let row_bytes = match op {
        Op::Delete => 0,
        Op::Insert | Op::Update => VALUE_BYTES,
    };
    let (journal, sync) = (options.journal()?.name(), options.synchronous()?.name());
    let mut settings: BTreeMap<String, String> = [
        ("path", options.path.display().to_string()),
        ("op", op.name().to_owned()),
        ("journal", journal.to_owned()),
        ("sync", sync.to_owned()),
        ("threads", threads.to_string()),
        ("transactions", options.transactions.to_string()),
        ("tables", tables.to_string()),
        ("databases", databases.to_string()),
        ("interval_ms", options.interval_ms.to_string()),
        ("random_insert", options.random_insert.is_some().to_string()),
        ("caches_dropped", dropped.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    engine.describe(&mut settings);
    let (version, call) = (engine.version(), engine.sync_call());
    let op = op.name();
    Ok(Task {
        workload: "mobibench",
        heading: format!(
            "SQLite {version} ({call}), {op} in {tables} tables of {databases} databases, journal {journal}, synchronous {sync}"
        ),
        payload_bytes: count.saturating_mul(rows).saturating_mul(row_bytes),
        count,
        settings,
    })
}
