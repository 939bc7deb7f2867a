// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes Parquet. The file's metadata has `mostrace.schema`, the version of the columns.

use std::io::Write;

use polars::prelude::{Column, DataFrame, DataType, PolarsResult, TimeUnit, TimeZone};
use polars_io::parquet::write::{
    BatchedWriter, KeyValueMetadata, ParquetCompression, ParquetWriter,
};

use super::Exporter;
use crate::facts::catalogue::SCHEMA;
use crate::tables::Table;

type Out<'w> = &'w mut (dyn Write + Send);

/// Writes Parquet. `out` is set until the first piece determines the columns; `writer` is set from then on.
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
        let frame = in_one_piece(&in_utc(table.frame)?)?;
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

/// Merges each column's chunks: columns whose chunks begin at different rows cannot be written together.
fn in_one_piece(frame: &DataFrame) -> PolarsResult<DataFrame> {
    let columns = frame.columns().iter().map(Column::rechunk).collect();
    DataFrame::new(frame.height(), columns)
}

/// Marks times as UTC for readers.
fn in_utc(mut frame: DataFrame) -> PolarsResult<DataFrame> {
    let utc = DataType::Datetime(TimeUnit::Microseconds, TimeZone::opt_try_new(Some("UTC"))?);
    let is_time = |column: &&Column| matches!(column.dtype(), DataType::Datetime(..));
    let times: Vec<Column> = frame.columns().iter().filter(is_time).cloned().collect();
    for time in times {
        frame.with_column(time.cast(&DataType::Int64)?.cast(&utc)?)?;
    }
    Ok(frame)
}
