// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parquet. The file's metadata has `mostrace.schema`, the version of the columns.

use std::io::Write;

use polars_io::parquet::write::{
    BatchedWriter, KeyValueMetadata, ParquetCompression, ParquetWriter,
};

use super::Exporter;
use crate::facts::catalogue::SCHEMA;
use crate::tables::Table;

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
    fn write(&mut self, table: Table) -> super::Result {
        let frame = table.frame;
        if let Some(out) = self.out.take() {
            let about = vec![
                ("mostrace.schema".to_owned(), SCHEMA.to_string()),
                (
                    "created_by".to_owned(),
                    concat!("mostrace ", env!("CARGO_PKG_VERSION")).to_owned(),
                ),
            ];
            let writer = ParquetWriter::new(out)
                .with_compression(ParquetCompression::Zstd(None))
                .with_key_value_metadata(Some(KeyValueMetadata::from_static(about)))
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
