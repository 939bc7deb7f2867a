// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comma-separated values, as RFC 4180 has them.

use std::io::Write;

use polars_io::SerWriter;
use polars_io::csv::write::CsvWriter;

use super::Exporter;
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
        let mut frame = table.frame;
        CsvWriter::new(&mut *self.out)
            .include_header(first)
            .with_datetime_format(Some("%Y-%m-%dT%H:%M:%S%.6fZ".into()))
            .finish(&mut frame)?;
        Ok(())
    }

    fn finish(self: Box<Self>) -> super::Result {
        Ok(())
    }
}
