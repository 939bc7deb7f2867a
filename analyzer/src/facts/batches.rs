// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows in batches: in memory as far as there is room, beyond that in temporary files.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use mostrace_bundle::temporary::TempFolder;
use polars::prelude::{DataFrame, PolarsResult};
use polars_io::SerReader;
use polars_io::parquet::read::ParquetReader;
use polars_io::parquet::write::{ParquetCompression, ParquetWriter};

/// Bytes of rows that stay in memory: those of some ten million events.
pub(super) const ROOM: usize = 256 << 20;

/// A batch, wherever it is.
enum Batch {
    Here(DataFrame),
    There(PathBuf),
}

/// The batches in the order of completion; no request is in two of them.
#[derive(Default)]
pub(super) struct Batches {
    batches: Vec<Batch>,
    room: usize,
    /// Created when the first batch has to leave; gone with this value.
    folder: Option<TempFolder>,
}

impl Batches {
    /// With so many bytes in memory.
    pub fn with_room(room: usize) -> Batches {
        Batches {
            room,
            ..Batches::default()
        }
    }

    /// Adds a batch.
    ///
    /// # Errors
    /// A temporary file cannot be written.
    pub fn push(&mut self, mut frame: DataFrame) -> PolarsResult<()> {
        if let Some(left) = self.room.checked_sub(frame.estimated_size()) {
            self.room = left;
            self.batches.push(Batch::Here(frame));
            return Ok(());
        }
        let folder = match &self.folder {
            Some(folder) => folder,
            None => self
                .folder
                .insert(TempFolder::new().map_err(io::Error::other)?),
        };
        let path = folder.path().join(self.batches.len().to_string());
        ParquetWriter::new(File::create(&path)?)
            .with_compression(ParquetCompression::Lz4Raw)
            .finish(&mut frame)?;
        self.batches.push(Batch::There(path));
        Ok(())
    }

    /// Each batch, with these columns at least.
    pub fn iter(&self, columns: Vec<String>) -> impl Iterator<Item = PolarsResult<DataFrame>> {
        self.batches.iter().map(move |batch| match batch {
            Batch::Here(frame) => Ok(frame.clone()),
            Batch::There(path) => ParquetReader::new(File::open(path)?)
                .with_columns(Some(columns.clone()))
                .finish(),
        })
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
            batches.push(frame(at * 1000)).unwrap();
        }
        let folder = batches.folder.as_ref().unwrap().path().to_owned();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
        let mut all = Vec::new();
        for batch in batches.iter(vec!["_a".into()]) {
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
