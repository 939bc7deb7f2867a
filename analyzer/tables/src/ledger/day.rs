// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of a day's file.

use std::io::Cursor;

use mostrace_bundle::{Total, health};
use polars::prelude::{
    Column, DataFrame, DataType, IntoColumn, ListChunked, NamedFrom, PolarsError, PolarsResult,
    Series, TimeUnit,
};
use polars_io::SerReader;
use polars_io::parquet::read::{ParallelStrategy, ParquetReader};
use polars_io::parquet::write::{ParquetCompression, ParquetWriter};

use super::hour::SUMMED;
use super::{Figures, Hour, Key};
use crate::caught::caught;

/// The names of columns with the drive's own counters begin with this.
pub(super) const DRIVE: &str = "drive_";
/// The most bytes of a day's file. A day of full hours has a tenth of it.
pub const LONGEST: u64 = 64 << 20;
/// Columns without which a file is no day of a ledger.
const SINCE_THE_FIRST: [&str; 4] = ["hour", "command", "write_bytes", "watched_ms"];

/// Returns rows in the form of a day's file.
pub(super) fn packed(mut rows: DataFrame) -> PolarsResult<Vec<u8>> {
    let mut bytes = Vec::new();
    ParquetWriter::new(&mut bytes)
        .with_compression(ParquetCompression::Zstd(None))
        .finish(&mut rows)?;
    Ok(bytes)
}

/// Reads the bytes of a day.
///
/// # Errors
/// Returns an error if they are damaged, or no day of a ledger.
pub(super) fn parse(bytes: Vec<u8>) -> PolarsResult<DataFrame> {
    let damaged = |why| {
        let why = format!("it is damaged: {why}");
        Err(PolarsError::ComputeError(why.into()))
    };
    if u64::try_from(bytes.len()).is_ok_and(|len| len > LONGEST) {
        return damaged(format!("it has more than {} MiB", LONGEST >> 20));
    }
    // Where it is tried there are fewer threads, on which the library's own choice would depend.
    let reader = ParquetReader::new(Cursor::new(bytes)).read_parallel(ParallelStrategy::Columns);
    let rows = caught(|| reader.finish()).unwrap_or_else(damaged);
    rows.and_then(|rows| with_all_columns(&rows))
}

fn with_all_columns(rows: &DataFrame) -> PolarsResult<DataFrame> {
    let all = frame(&Hour::default())?;
    let is_ours = |column: &Column| {
        let of_day = all.column(column.name());
        of_day.is_ok_and(|ours| ours.dtype() == column.dtype())
    };
    let has = |name: &str| rows.column(name).is_ok();
    if !rows.columns().iter().all(is_ours) || !SINCE_THE_FIRST.into_iter().all(has) {
        let what = "it is no day of a ledger: other columns".into();
        return Err(PolarsError::SchemaMismatch(what));
    }
    let columns = all
        .columns()
        .iter()
        .map(|ours| match rows.column(ours.name()) {
            Ok(column) => column.clone(),
            Err(_) => Column::full_null(ours.name().clone(), rows.height(), ours.dtype()),
        });
    DataFrame::new(rows.height(), columns.collect())
}

/// Returns the rows of an hour, first the one of the hour itself.
pub(super) fn frame(hour: &Hour) -> PolarsResult<DataFrame> {
    let watched = &hour.watched;
    let (no_key, no_figures) = (Key::default(), Figures::default());
    let own = (watched.ns > 0).then_some((&no_key, &no_figures, true));
    let rows = hour.rows.iter().map(|(key, figures)| (key, figures, false));
    let rows: Vec<(&Key, &Figures, bool)> = own.into_iter().chain(rows).collect();
    let text = |name: &str, of: fn(&Key) -> Option<&str>| {
        let values: Vec<Option<&str>> = rows.iter().map(|(key, ..)| of(key)).collect();
        Series::new(name.into(), values).into_column()
    };
    let sums = SUMMED.iter().map(|summed| {
        let values = rows.iter().map(|(_, figures, _)| (summed.of)(figures));
        Series::new(summed.name.into(), values.collect::<Vec<u64>>()).into_column()
    });
    let of_hour = |value: Option<u64>| -> Vec<Option<u64>> {
        let values = rows.iter().map(|(.., own)| value.filter(|_| *own));
        values.collect()
    };
    let own =
        |name: &str, value: Option<u64>| Series::new(name.into(), of_hour(value)).into_column();
    let epochs = rows
        .iter()
        .map(|(.., own)| watched.end.epoch.as_deref().filter(|_| *own));
    let epochs: Vec<Option<&str>> = epochs.collect();
    let is_new = watched.gap.map(|gap| gap.is_new_epoch);
    let are_new: Vec<Option<bool>> = rows
        .iter()
        .map(|(.., own)| is_new.filter(|_| *own))
        .collect();
    let written = |total: Option<Total>| Some(total?.write_bytes);
    let read = |total: Option<Total>| Some(total?.read_bytes);
    let gap = watched.gap.and_then(|gap| gap.kernel);
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
    let drive = health::ALL.into_iter().map(|gauge| {
        let value = watched.drive.get(gauge).copied();
        own(&format!("{DRIVE}{}", gauge), value)
    });
    let devices = vec![hour.device.as_str(); rows.len()];
    let keys = vec![
        times.cast(&DataType::Datetime(TimeUnit::Microseconds, None))?,
        Series::new("device".into(), devices).into_column(),
        Series::new("uid".into(), uids).into_column(),
        text("package", |key| key.package.as_deref()),
        text("command", |key| key.command.as_deref()),
        text("cgroup", |key| key.cgroup.as_deref()),
        text("operation", |key| key.operation),
        text("class", |key| key.class),
        text("role", |key| key.role),
        text("layer", |key| key.layer.as_deref()),
    ];
    let others = [
        list("durable_us", |(bound, _)| bound)?,
        list("durable_calls", |(_, count)| count)?,
        own("watched_ms", Some(watched.ns / 1_000_000)),
        own("kernel_write_bytes", written(watched.kernel)),
        own("kernel_read_bytes", read(watched.kernel)),
        own("lost", Some(watched.lost)),
        own("summed_up", Some(watched.summed_up)),
        own("end_unix_ms", Some(watched.end.unix_ms)),
        own("end_write_bytes", written(watched.end.total)),
        own("end_read_bytes", read(watched.end.total)),
        Series::new("epoch".into(), epochs).into_column(),
        own("gap_ms", watched.gap.map(|gap| gap.ms)),
        own("gap_write_bytes", written(gap)),
        own("gap_read_bytes", read(gap)),
        Series::new("gap_has_restart".into(), are_new).into_column(),
    ];
    let columns = keys.into_iter().chain(sums).chain(others).chain(drive);
    DataFrame::new(rows.len(), columns.collect())
}
