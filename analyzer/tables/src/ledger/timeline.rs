// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was written over time, in a limited number of columns.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};

use super::{Days, Error, Result, Sums, Time};
use mostrace_trace::tally::Tally;

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;

/// The bytes that groups of a ledger wrote over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The time when the first column begins, seconds since 1970.
    pub begin: i64,
    /// The length of a column: whole hours, or whole days if the time is longer.
    pub seconds: i64,
    /// The facts about the hours of each column; None if the device was not watched in any part of it.
    pub times: Vec<Option<Time>>,
    /// The groups, what wrote most first.
    pub rows: Vec<Row>,
}

/// One group's line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The values of the columns that it is grouped by.
    pub key: Vec<Option<String>>,
    /// Bytes written, in each column.
    pub write_bytes: Vec<u64>,
    /// Their sum.
    pub total: u64,
}

impl Timeline {
    /// Sums the days from the first to the last, both included, by columns of these names, in at most `most` columns of time.
    pub fn new(
        days: &Days,
        span: [Option<NaiveDate>; 2],
        by: &[&str],
        most: usize,
    ) -> Result<Timeline> {
        let by = [&["hour"], by].concat();
        let sums = Sums::new(days, span, &by)?;
        let hours = sums.times().map_err(Error::Hours)?;
        let groups: Vec<_> = sums
            .groups()
            .into_iter()
            .filter_map(|(key, sum)| {
                let (hour, key) = key.split_first()?;
                let hour = hour.as_deref().and_then(seconds)?;
                Some((hour, key, sum.write_bytes))
            })
            .collect();
        let times = || {
            groups
                .iter()
                .map(|(hour, ..)| *hour)
                .chain(hours.iter().map(|(hour, _)| *hour))
        };
        let (Some(first), Some(last)) = (times().min(), times().max()) else {
            return Ok(Timeline::default());
        };
        let scale = Scale::new(first, last, most);
        let mut rows: BTreeMap<&[Option<String>], Row> = BTreeMap::new();
        for (hour, key, bytes) in &groups {
            let row = rows.entry(key).or_insert_with(|| Row {
                key: key.to_vec(),
                write_bytes: vec![0; scale.columns],
                total: 0,
            });
            row.total.tally(*bytes);
            if let Some(column) = row.write_bytes.get_mut(scale.column(*hour)) {
                column.tally(*bytes);
            }
        }
        let mut times = vec![None; scale.columns];
        for (hour, time) in hours {
            if let Some(sum) = times.get_mut(scale.column(hour)) {
                sum.get_or_insert_with(Time::default).tally(time);
            }
        }
        let mut rows: Vec<Row> = rows.into_values().collect();
        rows.sort_by_key(|row| Reverse(row.total));
        Ok(Timeline {
            begin: scale.begin,
            seconds: scale.seconds,
            times,
            rows,
        })
    }
}

impl Timeline {
    /// Returns the length of a column, in words.
    pub fn length(&self) -> String {
        match self.seconds.div_euclid(HOUR) {
            1 => "an hour".into(),
            24 => "a day".into(),
            hours if hours.rem_euclid(24) == 0 => format!("{} days", hours.div_euclid(24)),
            hours => format!("{hours} hours"),
        }
    }
}

impl Row {
    /// Returns the group's name.
    pub fn name(&self) -> String {
        let names = self
            .key
            .iter()
            .map(|name| name.as_deref().unwrap_or("unknown"));
        names.collect::<Vec<_>>().join(", ")
    }
}

/// Columns of equal length.
struct Scale {
    begin: i64,
    seconds: i64,
    columns: usize,
}

impl Scale {
    /// Makes columns of the shortest whole number of hours, or of days, of which `most` are enough.
    fn new(first: i64, last: i64, most: usize) -> Scale {
        let most = i64::try_from(most).unwrap_or(i64::MAX).max(1);
        let length = last.saturating_sub(first).saturating_add(HOUR);
        let unit = if length.div_euclid(HOUR) < most {
            HOUR
        } else {
            DAY
        };
        let begin = first.saturating_sub(first.rem_euclid(unit));
        let units = last
            .saturating_sub(begin)
            .div_euclid(unit)
            .saturating_add(1);
        let each = units
            .saturating_add(most)
            .saturating_sub(1)
            .div_euclid(most);
        let seconds = unit.saturating_mul(each);
        let columns = last
            .saturating_sub(begin)
            .div_euclid(seconds)
            .saturating_add(1);
        Scale {
            begin,
            seconds,
            columns: usize::try_from(columns).unwrap_or(1),
        }
    }

    fn column(&self, time: i64) -> usize {
        let column = time.saturating_sub(self.begin).div_euclid(self.seconds);
        usize::try_from(column).unwrap_or(0)
    }
}

/// Returns a moment of RFC 3339 in seconds since 1970.
fn seconds(text: &str) -> Option<i64> {
    let time = text.parse::<DateTime<Utc>>().ok()?;
    Some(time.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Figures, Hour, Key, Trial, Watched};

    /// A ledger in which each hour wrote as many bytes as its number.
    fn ledger(folder: &std::path::Path, hours: &[u64]) -> Days {
        let days = Days::create(folder, Trial::None).unwrap();
        for &n in hours {
            let mut hour = Hour {
                begin: 1_000_000 * 3_600 + n * 3_600,
                watched: Watched {
                    ns: 3_600_000_000_000,
                    ..Watched::default()
                },
                ..Hour::default()
            };
            let key = Key {
                command: Some(if n % 2 == 0 { "even" } else { "odd" }.into()),
                ..Key::default()
            };
            let write_bytes = n;
            hour.add(
                key,
                Figures {
                    write_bytes,
                    ..Figures::default()
                },
            );
            days.add(&hour, &mut |said| panic!("{said}")).unwrap();
        }
        days
    }

    #[test]
    fn an_hour_has_a_column_if_there_is_room() {
        let dir = tempfile::tempdir().unwrap();
        let days = ledger(dir.path(), &[1, 2, 5]);
        let line = Timeline::new(&days, [None, None], &["command"], 60).unwrap();
        assert_eq!(line.seconds, HOUR);
        let watched: Vec<bool> = line.times.iter().map(Option::is_some).collect();
        assert_eq!(watched, [true, true, false, false, true]);
        let rows: Vec<_> = line.rows.iter().map(|row| &row.write_bytes[..]).collect();
        assert_eq!(rows, [[1, 0, 0, 0, 5], [0, 2, 0, 0, 0]]);
        assert_eq!(line.rows[0].key, [Some("odd".to_owned())]);
    }

    #[test]
    fn longer_times_have_days_in_a_column_and_keep_their_sums() {
        let dir = tempfile::tempdir().unwrap();
        let hours: Vec<u64> = (0..400).step_by(7).collect();
        let days = ledger(dir.path(), &hours);
        for most in [1, 2, 5, 17, 40, 400] {
            let line = Timeline::new(&days, [None, None], &[], most).unwrap();
            assert!(line.times.len() <= most, "{most}: {line:?}");
            let sum: u64 = line.rows[0].write_bytes.iter().sum();
            assert_eq!(sum, hours.iter().sum::<u64>(), "{most}");
            assert_eq!(sum, line.rows[0].total);
        }
    }

    #[test]
    fn an_empty_ledger_has_no_columns() {
        let dir = tempfile::tempdir().unwrap();
        let none = Days::create(dir.path(), Trial::None).unwrap();
        let line = Timeline::new(&none, [None, None], &[], 9).unwrap();
        assert_eq!(line, Timeline::default());
    }
}
