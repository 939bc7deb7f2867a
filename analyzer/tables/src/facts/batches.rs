// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows in batches: in memory up to a limit, beyond it in temporary files.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use mostrace_bundle::temporary::TempFolder;
use polars::prelude::{Column, DataFrame, Expr, IntoLazy, PolarsResult, Series};
use polars_io::SerReader;
use polars_io::parquet::read::ParquetReader;
use polars_io::parquet::write::{ParquetCompression, ParquetWriter};

use super::shares;
use mostrace_trace::tally::Tally;

/// Bytes of rows that stay in memory, enough for about ten million events.
pub(super) const ROOM: usize = 256 << 20;

/// A frame in memory or in a file.
enum Frame {
    Here(DataFrame),
    There(PathBuf),
}

impl Frame {
    /// Reads at least these columns; all of them if `columns` is None.
    fn read(&self, columns: Option<&Vec<String>>) -> PolarsResult<DataFrame> {
        match self {
            Frame::Here(frame) => Ok(frame.clone()),
            Frame::There(path) => ParquetReader::new(File::open(path)?)
                .with_columns(columns.cloned())
                .finish(),
        }
    }
}

/// Returns the memory of a frame in bytes. A column with a single value takes none until its own size is asked for.
fn size_of(frame: &DataFrame) -> usize {
    let columns = frame.columns().iter().filter_map(Column::as_series);
    columns.map(Series::estimated_size).sum()
}

/// Rows, and the shares of those with several causers.
struct Batch {
    rows: Frame,
    shares: Option<Frame>,
}

/// The batches in the order of completion; no request is in two of them.
#[derive(Default)]
pub(super) struct Batches {
    batches: Vec<Batch>,
    room: usize,
    /// Number of files written so far.
    files: usize,
    /// Created for the first batch that does not fit into memory; removed when this value is dropped.
    folder: Option<TempFolder>,
}

impl Batches {
    /// Keeps up to `room` bytes in memory.
    pub fn with_room(room: usize) -> Batches {
        Batches {
            room,
            ..Batches::default()
        }
    }

    /// Adds a batch: rows, and the shares of those with several causers.
    pub fn push(&mut self, rows: DataFrame, shares: Option<DataFrame>) -> PolarsResult<()> {
        let rows = self.keep(rows)?;
        let shares = shares.map(|shares| self.keep(shares)).transpose()?;
        self.batches.push(Batch { rows, shares });
        Ok(())
    }

    fn keep(&mut self, mut frame: DataFrame) -> PolarsResult<Frame> {
        if let Some(left) = self.room.checked_sub(size_of(&frame)) {
            self.room = left;
            return Ok(Frame::Here(frame));
        }
        let folder = match &self.folder {
            Some(folder) => folder,
            None => self
                .folder
                .insert(TempFolder::new().map_err(io::Error::other)?),
        };
        self.files.tally(1);
        let path = folder.path().join(self.files.to_string());
        ParquetWriter::new(File::create(&path)?)
            .with_compression(ParquetCompression::Lz4Raw)
            .finish(&mut frame)?;
        Ok(Frame::There(path))
    }

    /// Returns the rows of each batch with at least these columns, and with what the expressions `made` compute.
    pub fn iter(
        &self,
        columns: Vec<String>,
        made: Vec<Expr>,
    ) -> impl Iterator<Item = PolarsResult<DataFrame>> {
        let batches = self.batches.iter();
        batches.map(move |batch| with(batch.rows.read(Some(&columns))?, &made))
    }

    /// Returns the same rows, with each row of several causers cut into its shares; `made` is computed before the cut.
    pub fn cut(
        &self,
        columns: Vec<String>,
        made: Vec<Expr>,
    ) -> impl Iterator<Item = PolarsResult<DataFrame>> {
        self.batches.iter().map(move |batch| {
            let rows = batch.rows.read(Some(&columns))?;
            match &batch.shares {
                Some(shares) => {
                    let rows = with(rows.select(&columns)?, &made)?;
                    shares::cut(rows, &shares.read(None)?)
                }
                None => with(rows, &made),
            }
        })
    }
}

/// Adds what the expressions compute to the rows.
fn with(rows: DataFrame, made: &[Expr]) -> PolarsResult<DataFrame> {
    match made {
        [] => Ok(rows),
        _ => rows.lazy().with_columns(made).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polars::prelude::{IntoColumn, NamedFrom, Series};

    #[test]
    fn what_does_not_fit_comes_back_from_the_disk() {
        let frame = |from: u64| {
            let numbers = Series::new("_a".into(), (from..from + 1000).collect::<Vec<_>>());
            let others = Series::new("_b".into(), vec![7u32; 1000]);
            DataFrame::new(1000, vec![numbers.into_column(), others.into_column()]).unwrap()
        };
        let mut batches = Batches::with_room(20_000);
        for at in 0..3 {
            batches.push(frame(at * 1000), None).unwrap();
        }
        let folder = batches.folder.as_ref().unwrap().path().to_owned();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
        let mut all = Vec::new();
        for batch in batches.iter(vec!["_a".into()], Vec::new()) {
            all.extend(
                batch
                    .unwrap()
                    .column("_a")
                    .unwrap()
                    .u64()
                    .unwrap()
                    .into_no_null_iter(),
            );
        }
        assert_eq!(all, (0..3000).collect::<Vec<_>>());
        drop(batches);
        assert!(!folder.exists());
    }
}
