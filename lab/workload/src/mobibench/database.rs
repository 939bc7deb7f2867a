// SPDX-License-Identifier: MIT OR Apache-2.0
//! The databases of one thread; a transaction changes all of them.

use std::path::PathBuf;
use std::time::Duration;

use super::Mobibench;
use crate::measure::Stopwatch;
use crate::sqlite::{Connection, Engine, remove};
use crate::{Choice, Error, Journal, Op, Result};

/// The letters of two values with 100 characters each, which differ at every position.
const INSERTED: [u8; 10] = *b"abcdefghij";
const UPDATED: [u8; 10] = *b"fghijabcde";
/// The least number of rows for updates and deletions, so that a table has several pages.
const LEAST_ROWS: u64 = 296;

/// One thread's databases.
pub(super) struct Databases {
    paths: Vec<PathBuf>,
    /// One connection per database; the first connection has the other databases attached.
    connections: Vec<Box<dyn Connection>>,
    op: Op,
    journal: Journal,
    /// For each database: the rows that the transactions change, in the order of the tables, one transaction after the
    /// other.
    rows: Vec<Vec<u64>>,
    transactions: u64,
    tables: u32,
    interval: Duration,
}

impl Databases {
    /// Opens the databases and makes their tables.
    pub(super) fn open(options: &Mobibench, op: Op, engine: &Engine, thread: u32) -> Result<Self> {
        let transactions = options.transactions / u64::from(options.threads.clamp(1, 100));
        let name = |n| options.path.join(format!("test.db{thread}_{n}"));
        let mut databases = Self {
            paths: (0..options.databases.clamp(1, 20)).map(name).collect(),
            connections: Vec::new(),
            op,
            journal: options.journal()?,
            rows: Vec::new(),
            transactions,
            tables: options.tables.clamp(1, 20),
            interval: Duration::from_millis(options.interval_ms.min(10_000)),
        };
        let mut chance = fastrand::Rng::with_seed(thread.into());
        let setting = format!(
            "PRAGMA journal_mode={}; PRAGMA synchronous={}",
            databases.journal.name(),
            options.synchronous()?.name()
        );
        for path in databases.paths.clone() {
            databases.connections.push(engine.open(&path)?);
            let at = databases.connections.len().saturating_sub(1);
            databases.batch(at, "set the page size", "PRAGMA page_size=4096")?;
            // Setting the value that it has already would make SQLite write.
            if databases.number(at, "PRAGMA auto_vacuum")? != Some(1) {
                databases.batch(at, "set auto_vacuum", "PRAGMA auto_vacuum=1")?;
            }
            databases.batch(at, "set the pragmas", &setting)?;
            databases.make_tables(at)?;
            let rows = databases.rows_of(at, options.random_insert.is_some(), &mut chance)?;
            databases.rows.push(rows);
        }
        databases.attach()?;
        Ok(databases)
    }

    /// Makes the tables. Insertions begin with empty ones; the other operations keep existing rows.
    fn make_tables(&mut self, at: usize) -> Result<()> {
        if self.op == Op::Insert {
            for table in 0..self.tables {
                let drop = format!("DROP TABLE IF EXISTS tblMyList{table}");
                self.batch(at, "drop a table", &drop)?;
            }
        }
        let create = |table| {
            format!(
                "CREATE TABLE IF NOT EXISTS tblMyList{table} \
                 (id INTEGER PRIMARY KEY, Value TEXT not null, creation_date long);"
            )
        };
        let create: String = (0..self.tables).map(create).collect();
        self.batch(at, "make the tables", &format!("BEGIN;{create}COMMIT"))
    }

    /// Returns the rows that all transactions change. An update changes another row in each table, chosen from the
    /// existing ones and the one beyond the last; insertions and deletions change the same row in all tables.
    fn rows_of(
        &mut self,
        at: usize,
        is_random: bool,
        chance: &mut fastrand::Rng,
    ) -> Result<Vec<u64>> {
        let transactions = self.transactions;
        let tables = usize::try_from(self.tables).unwrap_or(usize::MAX);
        let mut rows: Vec<u64> = match self.op {
            Op::Insert => (0..transactions).collect(),
            Op::Update => {
                let there = self.fill(at)?;
                let all = transactions.saturating_mul(self.tables.into());
                return Ok((0..all).map(|_| chance.u64(1..=there)).collect());
            }
            Op::Delete => (0..self.fill(at)?).collect(),
        };
        if is_random || self.op == Op::Delete {
            chance.shuffle(&mut rows);
        }
        rows.truncate(usize::try_from(transactions).unwrap_or(usize::MAX));
        let of_all = rows
            .into_iter()
            .flat_map(|row| std::iter::repeat_n(row, tables));
        Ok(of_all.collect())
    }

    /// Inserts missing rows, one transaction per row. Returns the number of rows that exist then.
    fn fill(&mut self, at: usize) -> Result<u64> {
        let wanted = self.transactions.max(LEAST_ROWS);
        let mut least = u64::MAX;
        for table in 0..self.tables {
            let ask = format!("SELECT count(*) FROM tblMyList{table}");
            least = least.min(self.number(at, &ask)?.unwrap_or(0));
        }
        let value = text(INSERTED);
        for id in least..wanted {
            let insert = |table| {
                format!("INSERT OR IGNORE INTO tblMyList{table}(id,Value) VALUES({id},'{value}');")
            };
            let inserts: String = (0..self.tables).map(insert).collect();
            self.batch(at, "insert rows", &format!("BEGIN;{inserts}COMMIT"))?;
        }
        Ok(wanted.max(least))
    }

    /// Runs a query and returns the number that it yields.
    fn number(&mut self, at: usize, query: &str) -> Result<Option<u64>> {
        let row = self.connections.get_mut(at).map(|c| c.ask(query));
        let row = row.transpose().map_err(self.error(at, "ask"))?;
        let first = row.and_then(|row| row.into_iter().next().flatten());
        Ok(first.and_then(|number| number.parse().ok()))
    }

    fn attach(&mut self) -> Result<()> {
        let others: Vec<String> = (1_u32..)
            .zip(self.paths.iter().skip(1))
            .map(|(n, path)| {
                let quoted = path.display().to_string().replace('\'', "''");
                let journal = self.journal.name();
                format!("ATTACH DATABASE '{quoted}' AS db{n}; PRAGMA db{n}.journal_mode={journal}")
            })
            .collect();
        others
            .iter()
            .try_for_each(|attach| self.batch(0, "attach a database", attach))
    }

    /// Runs all transactions, and the checkpoint of the WAL.
    pub(super) fn work(&mut self, stopwatch: &mut Stopwatch<'_>) -> Result<()> {
        for number in 0..usize::try_from(self.transactions).unwrap_or(usize::MAX) {
            let statements = self.transaction(number);
            stopwatch.time(|| self.batch(0, "transaction", &statements))?;
            if !self.interval.is_zero() {
                std::thread::sleep(self.interval);
            }
        }
        if self.journal == Journal::Wal {
            for at in 0..self.connections.len() {
                self.batch(at, "checkpoint", "PRAGMA wal_checkpoint")?;
            }
        }
        Ok(())
    }

    /// Returns the statements of one transaction, which changes one row of every table in every database.
    fn transaction(&self, number: usize) -> String {
        let (inserted, updated) = (text(INSERTED), text(UPDATED));
        let mut statements = "BEGIN;".to_owned();
        for (database, rows) in self.rows.iter().enumerate() {
            let tables = usize::try_from(self.tables).unwrap_or(usize::MAX);
            let of_it = rows.chunks(tables).nth(number).unwrap_or_default();
            for (table, id) in of_it.iter().enumerate() {
                let table = match database {
                    0 => format!("tblMyList{table}"),
                    n => format!("db{n}.tblMyList{table}"),
                };
                statements += &match self.op {
                    Op::Insert => {
                        format!("INSERT INTO {table}(id,Value) VALUES({id},'{inserted}');")
                    }
                    Op::Update => format!("UPDATE {table} SET Value='{updated}' WHERE id={id};"),
                    Op::Delete => format!("DELETE FROM {table} WHERE id={id};"),
                };
            }
        }
        statements + "COMMIT"
    }

    /// Closes the databases. After deletions the tables are dropped and the files removed, as Mobibench does.
    pub(super) fn finish(mut self) -> Result<()> {
        if self.op == Op::Delete {
            for at in 0..self.connections.len() {
                for table in 0..self.tables {
                    let drop = format!("DROP TABLE IF EXISTS main.tblMyList{table}");
                    self.batch(at, "drop a table", &drop)?;
                }
            }
        }
        let paths = std::mem::take(&mut self.paths);
        for (connection, path) in self.connections.into_iter().zip(&paths) {
            let closed = connection.close();
            closed.map_err(Error::sqlite(path, "close"))?;
        }
        if self.op == Op::Delete {
            for path in &paths {
                remove(path)?;
            }
        }
        Ok(())
    }

    fn batch(&mut self, at: usize, doing: &'static str, sql: &str) -> Result<()> {
        match self.connections.get_mut(at).map(|c| c.batch(sql)) {
            Some(Err(cause)) => Err(self.error(at, doing)(cause)),
            _ => Ok(()),
        }
    }

    fn error(
        &self,
        at: usize,
        doing: &'static str,
    ) -> impl FnOnce(rusqlite::Error) -> Error + use<> {
        let path = self.paths.get(at).cloned().unwrap_or_default();
        move |cause| Error::sqlite(&path, doing)(cause)
    }
}

/// Returns each letter ten times.
fn text(letters: [u8; 10]) -> String {
    let ten_times = |letter: u8| std::iter::repeat_n(char::from(letter), 10);
    letters.into_iter().flat_map(ten_times).collect()
}
