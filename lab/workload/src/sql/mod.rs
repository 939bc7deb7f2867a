// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays an application's SQL statements.
//!
//! The log is SQL as the sqlite3 shell reads it. A comment `--@ SECONDS` gives the time, counted from the start of the
//! log, at which the following statements were run:
//!
//! ```text
//! --@ 0.000
//! INSERT INTO item VALUES (1, 'a; b');
//! --@ 1.250
//! BEGIN; DELETE FROM item WHERE id = 1; COMMIT;
//! ```
//!
//! As there, a statement that fails ends its line, and the lines behind are run, unless `.bail on` came before.

mod split;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::measure::{Progress, in_threads, timed};
use crate::outcome::{Outcome, Task};
use crate::sqlite::Engine;
use crate::{Error, Result};

/// Settings of a replay.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
pub struct SqlSettings {
    /// The statements
    #[arg(value_name = "FILE")]
    pub log: PathBuf,
    /// The database; created if it does not exist
    #[arg(default_value = "mostrace.db")]
    pub database: PathBuf,
    /// Run the statements one after the other, whatever the log's times
    #[arg(long = "no-timing", action = clap::ArgAction::SetFalse)]
    pub timing: bool,
    /// Take SQLite from this shared library
    #[arg(long = "sqlite-library", value_name = "PATH")]
    pub library: Option<PathBuf>,
}

/// Replays the log in one thread; `progress` counts statements.
///
/// Transactions are counted by looking at the statements; the payload's bytes are not known. Statements that fail and
/// commands that are left out are counted in the outcome.
///
/// # Errors
/// Returns an error if the log cannot be read, if a time is malformed, if a statement fails after `.bail on`, or if all
/// fail; it names the line.
pub fn run_sql(settings: &SqlSettings, progress: &Progress) -> Result<Outcome> {
    let engine = Engine::new(settings.library.as_deref())?;
    let text = fs::read_to_string(&settings.log).map_err(Error::io(&settings.log))?;
    let (setup, (script, connection)) = timed(|| {
        let script = split::script(&text).map_err(|(line, why)| Error::Line {
            path: settings.log.clone(),
            line,
            why,
        })?;
        Ok((script, engine.open(&settings.database)?))
    })?;
    let statements = &script.statements;
    let all = statements.len();
    let began = Instant::now();
    let ran = Mutex::new(Ran::default());
    let (mut workers, measured) =
        in_threads(vec![connection], progress, |connection, stopwatch| {
            for statement in statements {
                let mut ran = ran.lock().unwrap_or_else(PoisonError::into_inner);
                if ran.is_skipped(statement) {
                    continue;
                }
                if settings.timing {
                    std::thread::sleep(statement.at.saturating_sub(began.elapsed()));
                }
                let done = stopwatch.time(|| {
                    let done = connection.batch(statement.text);
                    done.map_err(|cause| Error::Line {
                        path: settings.log.clone(),
                        line: statement.line,
                        why: cause.to_string(),
                    })
                });
                ran.note(statement, done)?;
            }
            Ok(())
        })?;
    let ran = ran.into_inner().unwrap_or_else(PoisonError::into_inner);
    let failed = all.saturating_sub(ran.succeeded.len());
    let failed_or_skipped = match ran.first_failure {
        Some(error) if ran.succeeded.is_empty() => return Err(error),
        Some(error) => format!(", {failed} of them failed or behind one that did: {error}"),
        None => String::new(),
    };
    let (finish, ()) = timed(|| {
        let closed = workers
            .drain(..)
            .try_for_each(|connection| connection.close());
        closed.map_err(Error::sqlite(&settings.database, "close"))
    })?;
    let log = settings.log.display();
    let (version, call) = (engine.version(), engine.sync_call());
    let mut told = BTreeMap::from([
        ("log".to_owned(), log.to_string()),
        ("statements".to_owned(), all.to_string()),
        ("statements_failed".to_owned(), failed.to_string()),
        (
            "database.0".to_owned(),
            settings.database.display().to_string(),
        ),
    ]);
    engine.describe(&mut told);
    let task = Task {
        workload: "sql",
        heading: format!(
            "SQLite {version} ({call}), {all} statements of {log}{failed_or_skipped}{}",
            script.left_out
        ),
        payload_bytes: 0,
        count: split::commits(&ran.succeeded),
        settings: told,
    };
    Ok(Outcome::new(task, [setup, finish], measured))
}

/// One statement of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Statement<'t> {
    /// Its time, counted from the start of the log.
    at: Duration,
    /// The line on which it begins, counted from 1.
    line: u64,
    /// Its text with the semicolon.
    text: &'t str,
    /// The number of the lines that the shell runs together; if one statement there fails, it skips the others.
    lines: u64,
    /// True if the shell ends when the statement fails.
    bail: bool,
}

/// What has been run.
#[derive(Default)]
struct Ran<'t> {
    succeeded: Vec<Statement<'t>>,
    /// The lines of the last statement that failed.
    failed: Option<u64>,
    first_failure: Option<Error>,
}

impl<'t> Ran<'t> {
    fn is_skipped(&self, statement: &Statement<'_>) -> bool {
        self.failed == Some(statement.lines)
    }

    /// # Errors
    /// Returns the statement's error if that ends the run.
    fn note(&mut self, statement: &Statement<'t>, done: Result<()>) -> Result<()> {
        match done {
            Ok(()) => self.succeeded.push(*statement),
            Err(error) if statement.bail => return Err(error),
            Err(error) => {
                self.failed = Some(statement.lines);
                self.first_failure.get_or_insert(error);
            }
        }
        Ok(())
    }
}
