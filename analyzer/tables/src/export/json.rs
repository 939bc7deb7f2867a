// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes JSON: an array of objects, one line per object. Deceptive characters are written as `\u` and their number.

use std::io::Write;

use polars::prelude::AnyValue;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use super::Exporter;
use super::cell::moment;
use crate::tables::{Table, value};
use mostrace_trace::tally::Tally;
use mostrace_trace::text::harmless_json;

pub(super) struct Json<'w> {
    out: &'w mut (dyn Write + Send),
    rows: u64,
}

impl<'w> Json<'w> {
    pub fn new(out: &'w mut (dyn Write + Send)) -> Self {
        Json { out, rows: 0 }
    }
}

impl Exporter for Json<'_> {
    fn write(&mut self, table: Table) -> super::Result {
        for row in 0..table.len() {
            self.out
                .write_all(if self.rows == 0 { b"[\n" } else { b",\n" })?;
            let row = serde_json::to_string(&Row { table: &table, row })?;
            self.out.write_all(harmless_json(&row).as_bytes())?;
            self.rows.tally(1);
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> super::Result {
        self.out
            .write_all(if self.rows == 0 { b"[]\n" } else { b"\n]\n" })?;
        Ok(())
    }
}

/// Returns a whole table as a JSON array, without its total.
pub fn to_value(table: &Table) -> Value {
    (0..table.len_without_total())
        .filter_map(|row| serde_json::to_value(Row { table, row }).ok())
        .collect()
}

struct Row<'t> {
    table: &'t Table,
    row: usize,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let columns = self.table.frame.columns();
        let mut map = serializer.serialize_map(Some(columns.len()))?;
        for column in columns {
            map.serialize_key(column.name().as_str())?;
            match value(column, self.row) {
                AnyValue::Null => map.serialize_value(&())?,
                AnyValue::Boolean(v) => map.serialize_value(&v)?,
                AnyValue::Float64(v) => map.serialize_value(&v)?,
                AnyValue::Datetime(us, ..) => map.serialize_value(&moment(us))?,
                value => match (value.get_str(), value.extract::<i64>()) {
                    (Some(text), _) => map.serialize_value(text)?,
                    (None, Some(number)) => map.serialize_value(&number)?,
                    (None, None) => map.serialize_value(&value.to_string())?,
                },
            }
        }
        map.end()
    }
}
