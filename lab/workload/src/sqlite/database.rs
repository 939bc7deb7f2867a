// SPDX-License-Identifier: MIT OR Apache-2.0
//! One database with one connection: making it, working in it, closing it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::connection::{Connection, Value};
use super::engine::Engine;
use super::existing::make_way;
use crate::measure::Stopwatch;
use crate::{AutoVacuum, Choice, Error, Journal, Op, Result, Settings};

const CREATE: &str = "CREATE TABLE item (id INTEGER PRIMARY KEY, Value TEXT, creation_date long)";
const INSERT: &str = "INSERT INTO item (Value, creation_date) VALUES (?1, ?2)";
const UPDATE: &str = "UPDATE item SET Value = ?1, creation_date = ?2 WHERE id = ?3";
const DELETE: &str = "DELETE FROM item WHERE id = ?1";

/// The first creation_date, in ms since 1970, which grows by one per row: as wide as a date of today, yet the same in
/// each run.
const FIRST_DATE: i64 = 1_700_000_000_000;

/// An open database, and the place of the next operation in it.
pub(crate) struct Database {
    path: PathBuf,
    connection: Box<dyn Connection>,
    values: fastrand::Rng,
    next_date: i64,
    first_id: i64,
    last_id: i64,
    next_id: i64,
}

impl Database {
    /// Opens the database of thread number `thread`, and makes it if needed.
    pub(crate) fn open(
        path: &Path,
        thread: u64,
        settings: &Settings,
        engine: &Engine,
    ) -> Result<Self> {
        let is_new = make_way(path, settings)?;
        let connection = engine.open(path)?;
        let mut database = Self {
            path: path.to_owned(),
            connection,
            values: fastrand::Rng::with_seed(settings.seed.wrapping_add(thread)),
            next_date: FIRST_DATE,
            first_id: 1,
            last_id: 0,
            next_id: 1,
        };
        database.set_pragmas(settings, is_new)?;
        if is_new {
            database.batch("create the table", CREATE)?;
        }
        database.find_rows(settings)?;
        Ok(database)
    }

    fn set_pragmas(&mut self, settings: &Settings, is_new: bool) -> Result<()> {
        // The page size and auto_vacuum come first: they are fixed as soon as a page is written.
        if is_new {
            let shape = format!(
                "PRAGMA page_size={}; PRAGMA auto_vacuum={}",
                settings.page_size,
                settings.auto_vacuum.name()
            );
            self.batch("set the page size", &shape)?;
        }
        self.batch(
            "set the locking mode",
            &format!("PRAGMA locking_mode={}", settings.locking.name()),
        )?;
        self.batch(
            "set synchronous",
            &format!("PRAGMA synchronous={}", settings.sync.name()),
        )?;
        self.expect(
            "journal_mode",
            &format!("journal_mode={}", settings.journal.name()),
            settings.journal.name(),
        )?;
        let autocheckpoint = format!("PRAGMA wal_autocheckpoint={}", settings.wal_autocheckpoint);
        self.batch("set wal_autocheckpoint", &autocheckpoint)?;
        if !settings.checkpoint {
            let result = self.connection.keep_wal();
            result.map_err(self.error("set no checkpoint on close"))?;
        }
        self.expect("page_size", "page_size", &settings.page_size.to_string())?;
        let auto_vacuum = match settings.auto_vacuum {
            AutoVacuum::None => "0",
            AutoVacuum::Full => "1",
            AutoVacuum::Incremental => "2",
        };
        self.expect("auto_vacuum", "auto_vacuum", auto_vacuum)
    }

    /// Checks a pragma's value, because SQLite ignores what it cannot do.
    fn expect(&mut self, pragma: &'static str, statement: &str, asked: &str) -> Result<()> {
        let row = self.ask(pragma, &format!("PRAGMA {statement}"))?;
        let have = row.into_iter().next().flatten().unwrap_or_default();
        if have == asked {
            return Ok(());
        }
        Err(Error::Pragma {
            path: self.path.clone(),
            pragma,
            have,
            asked: asked.to_owned(),
        })
    }

    /// Finds the bounds of the ids. They are contiguous: only deletion makes gaps, and it begins with the first row.
    fn find_rows(&mut self, settings: &Settings) -> Result<()> {
        let doing = "look for rows";
        let bounds = "SELECT min(id), max(id) FROM item";
        let row = self.ask(doing, bounds)?;
        let id = |column: usize| row.get(column)?.as_ref()?.parse::<i64>().ok();
        let (first, last) = (id(0), id(1));
        self.first_id = first.unwrap_or(1);
        self.last_id = last.unwrap_or(0);
        self.next_id = self.first_id;
        if settings.op == Op::Update && last.is_some() {
            self.go_on_from_first_row(doing)?;
        }
        let have = u64::try_from(self.last_id.saturating_sub(self.first_id).saturating_add(1))
            .unwrap_or(0);
        let need = match settings.op {
            Op::Insert => 0,
            Op::Update => settings.rows().min(1),
            Op::Delete => settings.rows(),
        };
        if have < need {
            return Err(Error::TooFewRows {
                path: self.path.clone(),
                op: settings.op.name(),
                have,
                need,
            });
        }
        Ok(())
    }

    /// SQLite writes nothing when an update changes nothing, so no row may get the bytes that it already has. Updates
    /// go through the ids in order, so the first row has the latest date, and dates beyond it are new to every row.
    fn go_on_from_first_row(&mut self, doing: &'static str) -> Result<()> {
        let first = self.first_id;
        let row = self.ask(
            doing,
            &format!("SELECT creation_date FROM item WHERE id = {first}"),
        )?;
        let date = row.into_iter().next().flatten();
        let date: i64 = date
            .and_then(|date| date.parse().ok())
            .unwrap_or(FIRST_DATE);
        self.next_date = date.saturating_add(1);
        let stream = self.values.get_seed() ^ self.next_date.cast_unsigned().rotate_left(32);
        self.values.seed(stream);
        Ok(())
    }

    /// Runs all transactions.
    pub(crate) fn transactions(
        &mut self,
        settings: &Settings,
        stopwatch: &mut Stopwatch<'_>,
    ) -> Result<()> {
        for number in 0..settings.transactions {
            if number > 0 && settings.interval_ms > 0 {
                std::thread::sleep(Duration::from_millis(settings.interval_ms));
            }
            stopwatch.time(|| self.transaction(settings))?;
        }
        Ok(())
    }

    /// Runs one transaction. Making the values is part of it, at some nanoseconds per character.
    fn transaction(&mut self, settings: &Settings) -> Result<()> {
        self.batch("begin", "BEGIN")?;
        for _ in 0..settings.per_transaction {
            let value = self.value(settings);
            self.operation(settings.op, &value)?;
        }
        self.batch("commit", "COMMIT")
    }

    fn operation(&mut self, op: Op, value: &str) -> Result<()> {
        let (date, id) = (self.next_date, self.next_id);
        let (sql, doing) = match op {
            Op::Insert => (INSERT, "insert"),
            Op::Update => (UPDATE, "update"),
            Op::Delete => (DELETE, "delete"),
        };
        let (value, date_value, id_value) =
            (Value::Text(value), Value::Integer(date), Value::Integer(id));
        let changed = match op {
            Op::Insert => self.connection.execute(sql, &[value, date_value]),
            Op::Update => self.connection.execute(sql, &[value, date_value, id_value]),
            Op::Delete => self.connection.execute(sql, &[id_value]),
        };
        if changed.map_err(self.error(doing))? != 1 {
            return Err(Error::MissingRow {
                path: self.path.clone(),
                id,
            });
        }
        self.next_date = date.saturating_add(1);
        self.next_id = if id >= self.last_id {
            self.first_id
        } else {
            id.saturating_add(1)
        };
        Ok(())
    }

    fn value(&mut self, settings: &Settings) -> String {
        match settings.op {
            Op::Delete => String::new(),
            Op::Insert | Op::Update => std::iter::repeat_with(|| self.values.alphanumeric())
                .take(size(settings.value_size))
                .collect(),
        }
    }

    /// Runs the final checkpoint of the WAL and closes the database; SQLite then unlinks the -wal and -shm files.
    pub(crate) fn finish(mut self, settings: &Settings) -> Result<()> {
        if settings.journal == Journal::Wal && settings.checkpoint {
            self.batch("checkpoint", "PRAGMA wal_checkpoint")?;
        }
        let closed = self.connection.close();
        closed.map_err(Error::sqlite(&self.path, "close"))
    }

    fn batch(&mut self, doing: &'static str, sql: &str) -> Result<()> {
        let result = self.connection.batch(sql);
        result.map_err(self.error(doing))
    }

    fn ask(&mut self, doing: &'static str, sql: &str) -> Result<Vec<Option<String>>> {
        let result = self.connection.ask(sql);
        result.map_err(self.error(doing))
    }

    fn error(&self, doing: &'static str) -> impl FnOnce(rusqlite::Error) -> Error + '_ {
        Error::sqlite(&self.path, doing)
    }
}

fn size(bytes: u32) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
