// SPDX-License-Identifier: MIT OR Apache-2.0
//! JSON: one array with an object for each row, each on a line of its own.

use std::io::Write;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use super::Exporter;
use crate::tables::{Cell, Table};

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
    fn write(&mut self, table: &Table) -> super::Result {
        for row in 0..table.len() {
            self.out
                .write_all(if self.rows == 0 { b"[\n" } else { b",\n" })?;
            serde_json::to_writer(&mut *self.out, &Row { table, row })?;
            self.rows += 1;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> super::Result {
        self.out
            .write_all(if self.rows == 0 { b"[]\n" } else { b"\n]\n" })?;
        Ok(())
    }
}

/// A whole table as a JSON array, without its total.
pub fn to_value(table: &Table) -> Value {
    let rows = table.len() - usize::from(table.has_total);
    (0..rows)
        .filter_map(|row| serde_json::to_value(Row { table, row }).ok())
        .collect()
}

struct Row<'t> {
    table: &'t Table,
    row: usize,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.table.columns.len()))?;
        for column in &self.table.columns {
            map.serialize_key(column.name)?;
            match column.values.cell(self.row) {
                Cell::Empty => map.serialize_value(&())?,
                Cell::Id(v) | Cell::Amount(v) => map.serialize_value(&v)?,
                Cell::Real(v) => map.serialize_value(&v)?,
                Cell::Flag(v) => map.serialize_value(&v)?,
                Cell::Text(v) => map.serialize_value(v)?,
            }
        }
        map.end()
    }
}
