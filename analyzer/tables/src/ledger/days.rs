// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of a ledger, a day each.

use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Days as Span, NaiveDate};
use polars::prelude::{
    Column, DataFrame, DataType, IntoColumn, ListChunked, NamedFrom, PolarsError, PolarsResult,
    Series, TimeUnit,
};
use polars_io::SerReader;
use polars_io::parquet::read::{ParallelStrategy, ParquetReader};
use polars_io::parquet::write::{ParquetCompression, ParquetWriter};

use mostrace_bundle::{Folder, Total, health};

use super::trial::{Trial, Trials, Verdict};
use super::{Error, Figures, Hour, Key, Reading, Result};
use crate::caught::caught;

/// The folder of a ledger: `YYYY-MM-DD.parquet` for each day of UTC, with the rows of its hours.
///
/// A file is replaced as a whole whenever an hour is added, so that an hour is there as a whole or not at all, whatever
/// happens to the machine.
#[derive(Clone, Debug)]
pub struct Days {
    folder: Folder,
    trial: Trial,
    /// The hour that is not over, as its keeper handed it over.
    running: Option<Vec<u8>>,
}

/// The file that is locked while a ledger is kept.
pub const LOCK: &str = "lock";
/// The socket at which the keeper of a ledger hands over the running hour.
pub const RUNNING: &str = "running";
/// The longest line in it.
const LONGEST_LOCK: u64 = 64;
const ENDING: &str = "parquet";
/// The most bytes of a day's file. A day of full hours has a tenth of it.
pub const LONGEST: u64 = 64 << 20;
/// Columns without which a file is no day of a ledger.
const SINCE_THE_FIRST: [&str; 4] = ["hour", "command", "write_bytes", "watched_ms"];
/// The names of columns with the drive's own counters begin with this.
pub(super) const DRIVE: &str = "drive_";
/// A day that is being written.
const UNFINISHED: &str = "unfinished";
/// The ending of a day that cannot be read.
const DAMAGED: &str = "damaged";

impl Days {
    /// Opens a ledger. Whoever may write to its folder can damage its days: [`Trial`] says what then happens.
    ///
    /// # Errors
    /// Returns an error if there is no such folder, or if nobody ever kept a ledger in it.
    pub fn open(folder: &Path, trial: Trial) -> Result<Days> {
        let folder = Folder::open(folder)?;
        let days = Days {
            folder,
            trial,
            running: None,
        };
        match days.list()?.is_empty() && !days.is_begun()? {
            true => Err(Error::NoLedger(days.folder.path().to_owned())),
            false => Ok(days),
        }
    }

    /// Returns true if a ledger without hours is kept here, or was.
    fn is_begun(&self) -> Result<bool> {
        // Only its user can read the lock.
        Ok(self.folder.has(LOCK)? && self.folder.len_of(LOCK)? <= LONGEST_LOCK)
    }

    /// Opens a ledger, and makes its folder if it is missing.
    ///
    /// # Errors
    /// Returns an error if it cannot be made, or if another user's link leads to it.
    pub fn create(folder: &Path, trial: Trial) -> Result<Days> {
        let folder = Folder::make(folder)?;
        Ok(Days {
            folder,
            trial,
            running: None,
        })
    }

    /// Adds the [running](super::Running) hour to what is summed up, unless the ledger has it meanwhile.
    #[must_use]
    pub fn with_running(self, bytes: Option<Vec<u8>>) -> Days {
        Days {
            running: bytes,
            ..self
        }
    }

    /// Reads the running hour, and returns its day with its rows; None if there is none.
    ///
    /// # Errors
    /// Returns an error if it is damaged, or if it cannot be tried.
    pub(super) fn running(&self, trials: &mut Trials) -> Result<Option<(NaiveDate, DataFrame)>> {
        let Some(bytes) = &self.running else {
            return Ok(None);
        };
        let path = self.folder.path().join(RUNNING);
        let rows = tried(bytes.clone(), path.clone(), trials)?;
        let first = || {
            rows.column("hour")?
                .cast(&DataType::Int64)?
                .i64()
                .map(|all| all.iter().next().flatten())
        };
        let first = first().map_err(broken(path))?;
        let seconds = first.and_then(|us| u64::try_from(us.checked_div(1_000_000)?).ok());
        Ok(seconds.map(|seconds| (day(seconds), rows)))
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Adds an hour to the file of its day. If that file is damaged, it is set aside; `say` gets a line about it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be replaced; it is then as it was.
    pub fn add(&self, hour: &Hour, say: &mut dyn FnMut(String)) -> Result<()> {
        let day = day(hour.begin);
        let name = name(day);
        let path = self.path(day);
        let broken = broken(path.clone());
        let mut rows = frame(hour).map_err(&broken)?;
        if self.folder.has(&name)?
            && let Some(before) = self.sound(day, &mut self.trials(), say)?
        {
            rows = before.vstack(&rows).map_err(&broken)?;
        }
        // The table is first written to memory, because the writer does not say why it could not write, for example that the disk
        // is full.
        let bytes = packed(rows).map_err(&broken)?;
        let mut file = self.folder.replace(UNFINISHED)?;
        let written = file.write_all(&bytes).and_then(|()| file.sync_all());
        written.map_err(|source| Error::Io { path, source })?;
        self.folder.rename(UNFINISHED, &name)?;
        Ok(self.folder.sync()?)
    }

    /// Begins to read days.
    pub(super) fn trials(&self) -> Trials {
        self.trial.into()
    }

    /// Reads a day, which is tried first. Columns that an older version did not write are null.
    ///
    /// # Errors
    /// Returns an error if the file is damaged, or is no day of a ledger, or if it cannot be tried.
    pub(super) fn read(&self, day: NaiveDate, trials: &mut Trials) -> Result<DataFrame> {
        let path = self.path(day);
        let broken = broken(path.clone());
        let mut bytes = Vec::new();
        let file = self.folder.read(name(day))?;
        let read = file.take(LONGEST + 1).read_to_end(&mut bytes);
        read.map_err(|why| broken(why.into()))?;
        tried(bytes, path, trials)
    }

    /// Reads a day; None if it is damaged. It is then set aside, so that it stays, and the ledger goes on without it.
    ///
    /// # Errors
    /// Returns an error if it cannot be set aside, or if it could not be tried, which says nothing of the day.
    fn sound(
        &self,
        day: NaiveDate,
        trials: &mut Trials,
        say: &mut dyn FnMut(String),
    ) -> Result<Option<DataFrame>> {
        let why = match self.read(day, trials) {
            Ok(rows) => return Ok(Some(rows)),
            Err(untried @ Error::Io { .. }) => return Err(untried),
            Err(why) => why,
        };
        let aside = self
            .folder
            .set_aside(&name(day), &format!("{day}.{DAMAGED}"))?;
        say(format!("{why}; it is set aside as {aside}"));
        Ok(None)
    }

    /// Removes the days that are more than `keep` days before this moment, in seconds since 1970.
    ///
    /// # Errors
    /// Returns an error if one cannot be removed.
    pub fn forget(&self, keep: u64, now: u64) -> Result<()> {
        let Some(first) = day(now).checked_sub_days(Span::new(keep)) else {
            return Ok(());
        };
        for day in self.list()? {
            if day < first {
                self.folder.remove(name(day))?;
            }
        }
        Ok(())
    }

    /// Returns the readings at the ends of all hours.
    pub fn ends(&self) -> Result<Vec<Reading>> {
        let (mut ends, mut trials) = (Vec::new(), self.trials());
        for day in self.list()? {
            ends.extend(self.readings(day, &self.read(day, &mut trials)?)?);
        }
        Ok(ends)
    }

    /// Returns what [`Days::ends`] does. Days that are damaged are set aside; `say` gets a line about each.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read, or if a day cannot be tried or set aside.
    pub fn sound_ends(&self, say: &mut dyn FnMut(String)) -> Result<Vec<Reading>> {
        let (mut ends, mut trials) = (Vec::new(), self.trials());
        for day in self.list()? {
            if let Some(rows) = self.sound(day, &mut trials, say)? {
                ends.extend(self.readings(day, &rows)?);
            }
        }
        Ok(ends)
    }

    fn readings(&self, day: NaiveDate, rows: &DataFrame) -> Result<Vec<Reading>> {
        readings(rows).map_err(broken(self.path(day)))
    }

    /// Returns a day's path, for messages.
    pub(super) fn path(&self, day: NaiveDate) -> PathBuf {
        self.folder.path().join(name(day))
    }

    /// Returns the days that there are, in order. Other files in the folder are ignored.
    pub fn list(&self) -> Result<Vec<NaiveDate>> {
        let names = self.folder.names()?;
        let day = |name: &String| name.strip_suffix(ENDING)?.strip_suffix('.')?.parse().ok();
        let mut days: Vec<NaiveDate> = names.iter().filter_map(day).collect();
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

/// Tries and reads the bytes of a day; `path` is for messages. What is tried is what is read, even if the file changes.
fn tried(bytes: Vec<u8>, path: PathBuf, trials: &mut Trials) -> Result<DataFrame> {
    match trials.of(&bytes) {
        Ok(Verdict::Sound) => parse(bytes).map_err(broken(path)),
        Ok(Verdict::Damaged(why)) => Err(broken(path)(PolarsError::ComputeError(why.into()))),
        Err(source) => Err(Error::Io { path, source }),
    }
}

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

/// Returns the states at the ends of a day's hours.
fn readings(rows: &DataFrame) -> PolarsResult<Vec<Reading>> {
    let number = |name: &str| rows.column(name)?.u64().cloned();
    let (ends, written, read) = (
        number("end_unix_ms")?,
        number("end_write_bytes")?,
        number("end_read_bytes")?,
    );
    let epochs = rows.column("epoch")?.str()?;
    let all = ends
        .iter()
        .zip(epochs.iter())
        .zip(written.iter().zip(read.iter()));
    let readings = all.filter_map(|((end, epoch), (written, read))| {
        let total = written.zip(read).map(|(write_bytes, read_bytes)| Total {
            read_bytes,
            write_bytes,
        });
        Some(Reading {
            unix_ms: end?,
            total,
            epoch: epoch.map(str::to_owned),
        })
    });
    Ok(readings.collect())
}

fn broken(path: PathBuf) -> impl Fn(PolarsError) -> Error {
    move |source| Error::Day {
        path: path.clone(),
        source,
    }
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
    let number = |name: &str, of: fn(&Figures) -> u64| {
        let values: Vec<u64> = rows.iter().map(|(_, figures, _)| of(figures)).collect();
        Series::new(name.into(), values).into_column()
    };
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
        let value = watched.drive.get(gauge.name).copied();
        own(&format!("{DRIVE}{}", gauge.name), value)
    });
    let devices = vec![hour.device.as_str(); rows.len()];
    let columns = vec![
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
        number("write_bytes", |f| f.write_bytes),
        number("writes", |f| f.writes),
        number("read_bytes", |f| f.read_bytes),
        number("reads", |f| f.reads),
        number("zeroed_bytes", |f| f.zeroed_bytes),
        number("discard_bytes", |f| f.discard_bytes),
        number("flushes", |f| f.flushes),
        number("asked_bytes", |f| f.asked_bytes),
        number("charged_bytes", |f| f.charged_bytes),
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
    DataFrame::new(rows.len(), columns.into_iter().chain(drive).collect())
}
