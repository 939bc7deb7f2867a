// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comma-separated values, as RFC 4180 has them.

use std::io::Write;

use polars::prelude::CsvWriter;
use polars::prelude::SerWriter;

use super::Exporter;
use super::frame::frame;
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
    fn write(&mut self, table: &Table) -> super::Result {
        let first = std::mem::take(&mut self.first);
        CsvWriter::new(&mut *self.out)
            .include_header(first)
            .finish(&mut frame(table)?)?;
        Ok(())
    }

    fn finish(self: Box<Self>) -> super::Result {
        Ok(())
    }
}
