// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections of the built-in SQLite.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Result, ToSql, params_from_iter};

use super::connection::{Connection, Value};

pub(super) struct Bundled(rusqlite::Connection);

impl Bundled {
    pub(super) fn open(path: &Path) -> Result<Self> {
        rusqlite::Connection::open(path).map(Self)
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> Result<rusqlite::types::ToSqlOutput<'_>> {
        match self {
            Value::Integer(number) => Ok((*number).into()),
            Value::Text(text) => text.to_sql(),
        }
    }
}

impl Connection for Bundled {
    fn batch(&mut self, sql: &str) -> Result<()> {
        self.0.execute_batch(sql)
    }

    fn execute(&mut self, sql: &'static str, values: &[Value<'_>]) -> Result<u64> {
        let mut statement = self.0.prepare_cached(sql)?;
        let changed = statement.execute(params_from_iter(values))?;
        Ok(u64::try_from(changed).unwrap_or(u64::MAX))
    }

    fn ask(&mut self, sql: &str) -> Result<Vec<Option<String>>> {
        let mut statement = self.0.prepare(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        let Some(row) = rows.next()? else {
            return Ok(Vec::new());
        };
        let text = |column| {
            Ok(match row.get_ref(column)? {
                ValueRef::Null => None,
                ValueRef::Integer(number) => Some(number.to_string()),
                ValueRef::Real(number) => Some(number.to_string()),
                ValueRef::Text(text) | ValueRef::Blob(text) => {
                    Some(String::from_utf8_lossy(text).into_owned())
                }
            })
        };
        (0..columns).map(text).collect()
    }

    fn keep_wal(&mut self) -> Result<()> {
        let asked = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        self.0.set_db_config(asked, true).map(drop)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.0.close().map_err(|(_, cause)| cause)
    }
}
