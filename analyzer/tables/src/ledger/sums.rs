// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sums over the rows of a ledger.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::iter::repeat_n;

use chrono::{DateTime, NaiveDate, SecondsFormat};
use mostrace_bundle::Health;
use mostrace_bundle::health::{self, Gauges};
use polars::prelude::{
    ChunkedArray, DataFrame, DataType, IntoColumn, NamedFrom, PolarsResult, Series, StringChunked,
    UInt64Type,
};

use super::day::DRIVE;
use super::days::Days;
use super::hour::SUMMED;
use super::running::is_added;
use super::{Error, Figures, Result};
use crate::tables::Table;
use mostrace_trace::tally::{Tally, tallied_by_field};

/// The columns by which rows can be grouped.
pub const COLUMNS: [&str; 11] = [
    "day",
    "hour",
    "device",
    "uid",
    "package",
    "command",
    "cgroup",
    "operation",
    "class",
    "role",
    "layer",
];

/// The rows of some days, grouped by columns.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    by: Vec<String>,
    groups: BTreeMap<Vec<Option<String>>, Figures>,
    hours: Vec<DataFrame>,
    /// True if the hour that is not over is among them.
    pub has_running: bool,
    /// The sum of all groups.
    pub all: Figures,
    /// What the rows of the hours themselves tell.
    pub time: Time,
    /// Bytes that the kernel counted as written in the hours that can be compared with it, and those of the rows of these hours.
    compared: [u64; 2],
    /// When the drive's own counters were read, ms since 1970, and what they were.
    drive: BTreeMap<u64, Gauges>,
}

/// How completely the time was watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// The time for which the device was watched, ms.
    pub watched_ms: u64,
    /// Bytes that the kernel counted as written meanwhile.
    pub kernel_write_bytes: u64,
    /// Number of hours for which the kernel's counters cannot be compared.
    pub uncounted_hours: u64,
    /// Number of records that were lost.
    pub lost: u64,
    /// Number of times that a row was summed up with others because an hour had too many.
    pub summed_up: u64,
    /// Number of times between two recorders in which nobody watched.
    pub gaps: u64,
    /// The total length of these gaps, ms.
    pub gap_ms: u64,
    /// Bytes that the kernel counted as written in them. What was written before a restart is not among them.
    pub gap_write_bytes: u64,
    /// Number of gaps for which the kernel's counters cannot be compared.
    pub uncounted_gaps: u64,
    /// Number of gaps in which the kernel's counters began anew.
    pub restarts: u64,
}

tallied_by_field! {
    Time: watched_ms, kernel_write_bytes, uncounted_hours, lost, summed_up, gaps, gap_ms, gap_write_bytes, uncounted_gaps, restarts
}

impl Time {
    /// Returns what each row of an hour tells; None for the other rows.
    fn of(rows: &DataFrame) -> PolarsResult<Vec<Option<Time>>> {
        let number = |name: &str| rows.column(name)?.u64().cloned();
        let (watched, kernel, lost) = (
            number("watched_ms")?,
            number("kernel_write_bytes")?,
            number("lost")?,
        );
        let (gaps, written) = (number("gap_ms")?, number("gap_write_bytes")?);
        let summed_up = number("summed_up")?;
        let restarts = rows.column("gap_has_restart")?.bool()?;
        let time = |at: usize| {
            let of = |numbers: &Numbers| numbers.get(at).unwrap_or(0);
            Some(Time {
                watched_ms: watched.get(at)?,
                kernel_write_bytes: of(&kernel),
                uncounted_hours: kernel.get(at).is_none().into(),
                lost: of(&lost),
                summed_up: of(&summed_up),
                gaps: gaps.get(at).is_some().into(),
                gap_ms: of(&gaps),
                gap_write_bytes: of(&written),
                uncounted_gaps: (gaps.get(at).is_some() && written.get(at).is_none()).into(),
                restarts: restarts.get(at).unwrap_or(false).into(),
            })
        };
        Ok((0..rows.height()).map(time).collect())
    }
}

impl Sums {
    /// Sums the rows from the first day to the last, both included, by [`COLUMNS`] of these names.
    pub fn new(days: &Days, span: [Option<NaiveDate>; 2], by: &[&str]) -> Result<Sums> {
        let mut sums = Sums {
            by: by.iter().map(|name| (*name).to_owned()).collect(),
            ..Sums::default()
        };
        let mut trials = days.trials();
        let [first, last] = span;
        let is_wanted = |day: NaiveDate| {
            first.is_none_or(|first| day >= first) && last.is_none_or(|last| day <= last)
        };
        let mut running = days
            .running(&mut trials)?
            .filter(|(day, _)| is_wanted(*day));
        for day in days.list()?.into_iter().filter(|day| is_wanted(*day)) {
            let broken = |source| Error::Day {
                path: days.path(day),
                source,
            };
            let rows = days.read(day, &mut trials)?;
            if let Some((of, hour)) = &running
                && *of == day
                && is_added(&rows, hour).map_err(broken)?
            {
                running = None;
            }
            sums.add(day, &rows).map_err(broken)?;
        }
        if let Some((day, rows)) = running {
            sums.has_running = true;
            sums.add(day, &rows).map_err(Error::Hours)?;
        }
        Ok(sums)
    }

    fn add(&mut self, day: NaiveDate, rows: &DataFrame) -> PolarsResult<()> {
        let labels = self.by.iter().map(|name| label(name, day, rows));
        let labels: Vec<StringChunked> = labels.collect::<PolarsResult<_>>()?;
        let number = |name: &str| rows.column(name)?.u64().cloned();
        let figures = SUMMED.iter().map(|summed| number(summed.name));
        let figures: Vec<Numbers> = figures.collect::<PolarsResult<_>>()?;
        let times = Time::of(rows)?;
        let list = |name: &str| rows.column(name)?.list().cloned();
        let (bounds, counts) = (list("durable_us")?, list("durable_calls")?);
        let begins = rows.column("hour")?.cast(&DataType::Int64)?;
        let begins = begins.i64()?;
        let mut compared: BTreeMap<Option<i64>, Compared> = BTreeMap::new();
        for (at, time) in times.into_iter().enumerate() {
            let compared = compared.entry(begins.get(at)).or_default();
            if let Some(time) = time {
                self.time.tally(time);
                compared.kernel.tally(time.kernel_write_bytes);
                compared.is_uncounted |= time.uncounted_hours > 0;
                continue;
            }
            let mut sum = Figures::default();
            for (summed, of) in SUMMED.iter().zip(&figures) {
                *(summed.place)(&mut sum) = of.get(at).unwrap_or(0);
            }
            if let (Some(bounds), Some(counts)) =
                (bounds.get_as_series(at), counts.get_as_series(at))
            {
                for (bound, count) in bounds.u64()?.iter().zip(counts.u64()?.iter()) {
                    sum.durable.add(bound.unwrap_or(0), count.unwrap_or(0));
                }
            }
            compared.here.tally(sum.write_bytes);
            compared.here.tally(sum.zeroed_bytes);
            let key = labels.iter().map(|of| of.get(at).map(str::to_owned));
            self.all.tally(sum.clone());
            self.groups.entry(key.collect()).or_default().tally(sum);
        }
        for hour in compared.values().filter(|hour| !hour.is_uncounted) {
            self.compared.tally([hour.kernel, hour.here]);
        }
        let is_own = rows.column("watched_ms")?.is_not_null();
        let hours = rows.filter(&is_own)?;
        self.add_drive(&hours)?;
        self.hours.push(hours);
        Ok(())
    }

    /// Returns the bytes that the kernel counted as written and that no row has, of the hours that can be compared with its counters.
    pub fn missing_write_bytes(&self) -> u64 {
        let [kernel, here] = self.compared;
        kernel.saturating_sub(here)
    }

    /// Adds what the drive said at the ends of these hours.
    fn add_drive(&mut self, hours: &DataFrame) -> PolarsResult<()> {
        let ends = hours.column("end_unix_ms")?.u64()?;
        for gauge in health::ALL {
            let values = hours.column(&format!("{DRIVE}{}", gauge))?.u64()?;
            for (end, value) in ends.iter().zip(values.iter()) {
                if let (Some(end), Some(value)) = (end, value) {
                    let gauges = self.drive.entry(end).or_default();
                    gauges.insert(gauge.to_owned(), value);
                }
            }
        }
        Ok(())
    }

    /// Returns the drive's own counters at the ends of the first and the last hour; None if it has none.
    pub fn drive(&self) -> Option<Health> {
        let (_, first) = self.drive.first_key_value()?;
        let (_, last) = self.drive.last_key_value()?;
        Some(Health {
            before: first.clone(),
            after: Some(last.clone()),
            ..Health::default()
        })
    }

    /// Returns the groups and their figures: in the order of time if they are grouped by it, otherwise what wrote most first.
    pub fn groups(&self) -> Vec<(&[Option<String>], &Figures)> {
        let mut groups: Vec<_> = self
            .groups
            .iter()
            .map(|(key, sum)| (key.as_slice(), sum))
            .collect();
        let times = self
            .by
            .iter()
            .take_while(|name| ["day", "hour"].contains(&name.as_str()));
        let times = times.count();
        groups.sort_by_key(|(key, sum)| {
            let when = key.get(..times).unwrap_or_default().to_vec();
            (
                when,
                Reverse((
                    sum.write_bytes,
                    sum.read_bytes,
                    sum.flushes,
                    sum.asked_bytes,
                )),
            )
        });
        groups
    }

    /// Returns the groups as a table with a total.
    ///
    /// # Errors
    /// Does not fail as long as no two columns are given the same name.
    pub fn table(&self) -> PolarsResult<Table> {
        let mut groups = self.groups();
        let total: Vec<Option<String>> = vec![None; self.by.len()];
        groups.push((&total, &self.all));
        let labels = self.by.iter().enumerate().map(|(at, name)| {
            let values: Vec<Option<&str>> = groups
                .iter()
                .map(|(key, _)| key.get(at).and_then(Option::as_deref))
                .collect();
            Series::new(name.into(), values).into_column()
        });
        let number = |name: &str, of: &dyn Fn(&Figures) -> Option<u64>| {
            let values: Vec<Option<u64>> = groups.iter().map(|(_, sum)| of(sum)).collect();
            Series::new(name.into(), values).into_column()
        };
        let sums = SUMMED.iter();
        let sums = sums.map(|summed| number(summed.name, &|sum| Some((summed.of)(sum))));
        let durable = [
            number("durable_calls", &|sum| Some(sum.durable.len())),
            number("durable_p50_us", &|sum| sum.durable.quantile(50)),
            number("durable_p99_us", &|sum| sum.durable.quantile(99)),
        ];
        Table::with_total(labels.chain(sums).chain(durable).collect())
    }

    /// Returns when the hours begin in which the device was watched, seconds since 1970, and what they tell.
    ///
    /// # Errors
    /// Does not fail as long as the days have the same columns.
    pub(super) fn times(&self) -> PolarsResult<Vec<(i64, Time)>> {
        let mut all = Vec::new();
        for rows in &self.hours {
            let hours = rows.column("hour")?.cast(&DataType::Int64)?;
            let times = Time::of(rows)?;
            let times = hours.i64()?.iter().zip(times);
            all.extend(times.filter_map(|(us, time)| Some((us?.div_euclid(1_000_000), time?))));
        }
        Ok(all)
    }

    /// Returns a row for each hour: for how long it was watched, what the kernel counted, what was lost, and those counters of the drive's
    /// own that it has. An hour in which the ledger was started again has several.
    ///
    /// # Errors
    /// Does not fail as long as the days have the same columns.
    pub fn hours(&self) -> PolarsResult<Table> {
        const OF_HOURS: [&str; 11] = [
            "hour",
            "device",
            "watched_ms",
            "kernel_write_bytes",
            "kernel_read_bytes",
            "lost",
            "summed_up",
            "gap_ms",
            "gap_write_bytes",
            "gap_read_bytes",
            "gap_has_restart",
        ];
        let has = |name: &&str| self.drive.values().any(|of| of.contains_key(*name));
        let drive = health::ALL.map(|gauge| gauge);
        let drive = drive.iter().filter(|name| has(name));
        let drive = drive.map(|name| format!("{DRIVE}{name}"));
        let columns = OF_HOURS.map(str::to_owned).into_iter().chain(drive);
        let columns: Vec<String> = columns.collect();
        let mut all: Option<DataFrame> = None;
        for hours in &self.hours {
            let hours = hours.select(columns.clone())?;
            all = Some(match all {
                Some(all) => all.vstack(&hours)?,
                None => hours,
            });
        }
        Ok(all.unwrap_or_default().into())
    }
}

/// An hour's bytes written: the kernel's, and those of its rows.
#[derive(Default)]
struct Compared {
    kernel: u64,
    here: u64,
    is_uncounted: bool,
}

type Numbers = ChunkedArray<UInt64Type>;

/// Returns a column of labels as texts.
fn label(name: &str, day: NaiveDate, rows: &DataFrame) -> PolarsResult<StringChunked> {
    Ok(match name {
        "day" => repeat_n(day.to_string(), rows.height()).map(Some).collect(),
        "hour" => {
            let hours = rows.column(name)?.cast(&DataType::Int64)?;
            hours.i64()?.iter().map(|us| Some(time(us?))).collect()
        }
        name => rows.column(name)?.cast(&DataType::String)?.str()?.clone(),
    })
}

/// Writes Unix time in µs as RFC 3339 does.
fn time(us: i64) -> String {
    let time = DateTime::from_timestamp_micros(us).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}
