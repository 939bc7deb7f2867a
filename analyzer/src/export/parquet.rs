// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parquet. The file's metadata has `mostrace.schema`, the version of the columns.

use std::io::Write;

use polars::io::parquet::write::BatchedWriter;
use polars::prelude::{KeyValueMetadata, ParquetCompression, ParquetWriter};

use super::Exporter;
use super::frame::frame;
use crate::tables::{SCHEMA, Table};

type Out<'w> = &'w mut (dyn Write + Send);

/// `out` until the first piece tells the columns, `writer` from then on.
pub(super) struct Parquet<'w> {
    out: Option<Out<'w>>,
    writer: Option<BatchedWriter<Out<'w>>>,
}

impl<'w> Parquet<'w> {
    pub fn new(out: Out<'w>) -> Self {
        Parquet {
            out: Some(out),
            writer: None,
        }
    }
}

impl Exporter for Parquet<'_> {
    fn write(&mut self, table: &Table) -> super::Result {
        let frame = frame(table)?;
        if let Some(out) = self.out.take() {
            let version = vec![("mostrace.schema".to_owned(), SCHEMA.to_string())];
            let writer = ParquetWriter::new(out)
                .with_compression(ParquetCompression::Zstd(None))
                .with_key_value_metadata(Some(KeyValueMetadata::from_static(version)))
                .batched(frame.schema())?;
            self.writer = Some(writer);
        }
        if let Some(writer) = &mut self.writer {
            writer.write_batch(&frame)?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> super::Result {
        if let Some(writer) = self.writer {
            writer.finish()?;
        }
        Ok(())
    }
}
