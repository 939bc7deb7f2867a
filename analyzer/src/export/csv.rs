// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comma-separated values, as RFC 4180 has them.

use std::io::Write;

use polars::prelude::{
    AnyValue, Column, DataFrame, DataType, IntoColumn, NamedFrom, PolarsResult, Series,
};
use polars_io::SerWriter;
use polars_io::csv::write::CsvWriter;

use super::Exporter;
use super::cell::moment;
use crate::tables::Table;

pub(super) struct Csv<'w> {
    out: &'w mut (dyn Write + Send),
    first: bool,
}

impl<'w> Csv<'w> {
    pub fn new(out: &'w mut (dyn Write + Send)) -> Self {
        Csv { out, first: true }
    }
}

impl Exporter for Csv<'_> {
    fn write(&mut self, table: Table) -> super::Result {
        let first = std::mem::take(&mut self.first);
        let mut frame = times_as_text(table.frame)?;
        CsvWriter::new(&mut *self.out)
            .include_header(first)
            .finish(&mut frame)?;
        Ok(())
    }

    fn finish(self: Box<Self>) -> super::Result {
        Ok(())
    }
}

/// In the same words as in JSON.
fn times_as_text(mut frame: DataFrame) -> PolarsResult<DataFrame> {
    let is_time = |column: &&Column| matches!(column.dtype(), DataType::Datetime(..));
    let times: Vec<Column> = frame.columns().iter().filter(is_time).cloned().collect();
    for time in times {
        let text = |row| match time.get(row) {
            Ok(AnyValue::Datetime(us, ..)) => Some(moment(us)),
            _ => None,
        };
        let texts: Vec<Option<String>> = (0..time.len()).map(text).collect();
        frame.with_column(Series::new(time.name().clone(), texts).into_column())?;
    }
    Ok(frame)
}
