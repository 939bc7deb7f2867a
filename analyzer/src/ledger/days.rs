// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of a ledger, a day each.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Days as Span, NaiveDate};
use polars::prelude::{
    Column, DataFrame, DataType, IntoColumn, ListChunked, NamedFrom, PolarsError, PolarsResult,
    Series, TimeUnit,
};
use polars_io::SerReader;
use polars_io::parquet::read::ParquetReader;
use polars_io::parquet::write::{ParquetCompression, ParquetWriter};

use mostrace_bundle::Folder;

use super::{Error, Figures, Hour, Key, Result};

/// The folder of a ledger: `YYYY-MM-DD.parquet` for each day of UTC, with the rows of its hours.
///
/// A file is replaced as a whole whenever an hour is added, so that an hour is there as a whole or not at all, whatever
/// happens to the machine.
#[derive(Clone, Debug)]
pub struct Days {
    folder: PathBuf,
}

const ENDING: &str = "parquet";
/// A day that is being written.
const UNFINISHED: &str = "unfinished";

impl Days {
    /// Opens a ledger that is there, or that will be.
    pub fn new(folder: &Path) -> Days {
        Days {
            folder: folder.to_owned(),
        }
    }

    /// Creates the folder if it is missing.
    ///
    /// # Errors
    /// Returns an error if it cannot be created.
    pub fn create(&self) -> Result<()> {
        fs::create_dir_all(&self.folder).map_err(failed(&self.folder))
    }

    /// Adds an hour to the file of its day.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or replaced; it is then as it was.
    pub fn add(&self, hour: &Hour) -> Result<()> {
        let name = name(day(hour.begin));
        let path = self.folder.join(&name);
        let broken = broken(&path);
        let mut rows = frame(hour).map_err(&broken)?;
        if path.exists() {
            rows = read(&path)?.vstack(&rows).map_err(&broken)?;
        }
        let folder = Folder::open(&self.folder)?;
        let file = folder.replace(UNFINISHED)?;
        ParquetWriter::new(&file)
            .with_compression(ParquetCompression::Zstd(None))
            .finish(&mut rows)
            .map_err(&broken)?;
        file.sync_all().map_err(failed(&path))?;
        folder.rename(UNFINISHED, &name)?;
        let folder = File::open(&self.folder).and_then(|folder| folder.sync_all());
        folder.map_err(failed(&self.folder))
    }

    /// Removes the days that are more than `keep` days before this moment, in seconds since 1970.
    ///
    /// # Errors
    /// Returns an error if one cannot be removed.
    pub fn forget(&self, keep: u64, now: u64) -> Result<()> {
        let Some(first) = day(now).checked_sub_days(Span::new(keep)) else {
            return Ok(());
        };
        for (day, path) in self.list()? {
            if day < first {
                fs::remove_file(&path).map_err(failed(&path))?;
            }
        }
        Ok(())
    }

    /// Returns the days that there are, in order. Other files in the folder are ignored.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read.
    pub fn list(&self) -> Result<Vec<(NaiveDate, PathBuf)>> {
        let mut days = Vec::new();
        let failed = failed(&self.folder);
        for entry in fs::read_dir(&self.folder).map_err(&failed)? {
            let path = entry.map_err(&failed)?.path();
            let name = path.file_stem().and_then(|name| name.to_str());
            let name = name.filter(|_| path.extension().is_some_and(|ending| ending == ENDING));
            if let Some(day) = name.and_then(|name| name.parse().ok()) {
                days.push((day, path));
            }
        }
        days.sort_unstable();
        Ok(days)
    }
}

fn name(day: NaiveDate) -> String {
    format!("{day}.{ENDING}")
}

/// Returns the day of UTC of a moment.
fn day(unix: u64) -> NaiveDate {
    let moment = i64::try_from(unix).ok();
    let moment = moment.and_then(|unix| DateTime::from_timestamp(unix, 0));
    moment.unwrap_or_default().date_naive()
}

/// Reads a day.
///
/// # Errors
/// Returns an error if the file is damaged, or is no day of a ledger.
pub(super) fn read(path: &Path) -> Result<DataFrame> {
    let file = File::open(path).map_err(failed(path))?;
    let broken = broken(path);
    let rows = ParquetReader::new(file).finish().map_err(&broken)?;
    let empty = frame(&Hour::default()).map_err(&broken)?;
    if rows.schema() != empty.schema() {
        let what = "it is no day of a ledger: other columns".into();
        return Err(broken(PolarsError::SchemaMismatch(what)));
    }
    Ok(rows)
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Error {
    move |source| Error::Io {
        path: path.to_owned(),
        source,
    }
}

fn broken(path: &Path) -> impl Fn(PolarsError) -> Error {
    move |source| Error::Day {
        path: path.to_owned(),
        source,
    }
}

/// Returns the rows of an hour, first the one of the hour itself.
fn frame(hour: &Hour) -> PolarsResult<DataFrame> {
    let watched = &hour.watched;
    let (no_key, no_figures) = (Key::default(), Figures::default());
    let own = (watched.ns > 0).then_some((&no_key, &no_figures, true));
    let rows = hour.rows.iter().map(|(key, figures)| (key, figures, false));
    let rows: Vec<(&Key, &Figures, bool)> = own.into_iter().chain(rows).collect();
    let text = |name: &str, of: fn(&Key) -> Option<&str>| {
        let values: Vec<Option<&str>> = rows.iter().map(|(key, ..)| of(key)).collect();
        Series::new(name.into(), values).into_column()
    };
    let number = |name: &str, of: fn(&Figures) -> u64| {
        let values: Vec<u64> = rows.iter().map(|(_, figures, _)| of(figures)).collect();
        Series::new(name.into(), values).into_column()
    };
    let own = |name: &str, value: u64| {
        let values: Vec<Option<u64>> = rows.iter().map(|(.., own)| own.then_some(value)).collect();
        Series::new(name.into(), values).into_column()
    };
    let list = |name: &str, of: fn((u64, u64)) -> u64| {
        let values = rows.iter().map(|(_, figures, _)| {
            let values: Vec<u64> = figures.durable.iter().map(of).collect();
            Series::new("".into(), values)
        });
        let list: ListChunked = values.collect();
        let list = list.into_column().with_name(name.into());
        list.cast(&DataType::List(Box::new(DataType::UInt64)))
    };
    let time = hour.begin.saturating_mul(1_000_000);
    let times = vec![i64::try_from(time).unwrap_or(0); rows.len()];
    let times: Column = Series::new("hour".into(), times).into_column();
    let uids: Vec<Option<u32>> = rows.iter().map(|(key, ..)| key.uid).collect();
    let devices = vec![hour.device.as_str(); rows.len()];
    DataFrame::new(
        rows.len(),
        vec![
            times.cast(&DataType::Datetime(TimeUnit::Microseconds, None))?,
            Series::new("device".into(), devices).into_column(),
            Series::new("uid".into(), uids).into_column(),
            text("package", |key| key.package.as_deref()),
            text("command", |key| key.command.as_deref()),
            text("operation", |key| key.operation),
            text("class", |key| key.class),
            text("role", |key| key.role),
            text("layer", |key| key.layer.as_deref()),
            number("write_bytes", |f| f.write_bytes),
            number("writes", |f| f.writes),
            number("read_bytes", |f| f.read_bytes),
            number("reads", |f| f.reads),
            number("zeroed_bytes", |f| f.zeroed_bytes),
            number("discard_bytes", |f| f.discard_bytes),
            number("flushes", |f| f.flushes),
            number("asked_bytes", |f| f.asked_bytes),
            list("durable_us", |(bound, _)| bound)?,
            list("durable_calls", |(_, count)| count)?,
            own("watched_ms", watched.ns / 1_000_000),
            own("kernel_write_bytes", watched.kernel_write_bytes),
            own("kernel_read_bytes", watched.kernel_read_bytes),
            own("lost", watched.lost),
        ],
    )
}
