// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of a ledger, a day each.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Days as Span, NaiveDate};
use polars::prelude::{DataFrame, DataType, PolarsError, PolarsResult};

use mostrace_bundle::{Folder, Total};

use super::day::{LONGEST, frame, packed, parse};
use super::trial::{Trial, Trials, Verdict};
use super::{Error, Hour, Reading, Result};

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
        let begin = beginning(&rows).map_err(broken(path))?;
        Ok(begin.map(|seconds| (day(seconds), rows)))
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

/// Returns when the first of the hours begins, seconds since 1970; None if there are no rows.
fn beginning(rows: &DataFrame) -> PolarsResult<Option<u64>> {
    let hours = rows.column("hour")?.cast(&DataType::Int64)?;
    let first = hours.i64()?.iter().next().flatten();
    Ok(first.and_then(|us| u64::try_from(us.checked_div(1_000_000)?).ok()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_that_has_just_begun_has_no_rows() {
        assert_eq!(beginning(&frame(&Hour::default()).unwrap()).unwrap(), None);
        let mut hour = Hour {
            begin: 7200,
            ..Hour::default()
        };
        hour.watched.ns = 1;
        assert_eq!(beginning(&frame(&hour).unwrap()).unwrap(), Some(7200));
    }
}
