// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of a ledger: what was written over time by groups, and the tables of the groups and of the hours.

use chrono::{DateTime, SecondsFormat};
use polars::prelude::{Column, DataType, IntoColumn, NamedFrom, PolarsResult, Series};
use serde::Serialize;

use super::error::Error;
use super::grid::Grid;
use super::page::Page;
use mostrace_tables::ledger::{Sums, Time, Timeline};
use mostrace_tables::tables::Table;
use mostrace_trace::tally::Tally;

/// The groups that have a colour of their own; the others are drawn as one.
const DRAWN: usize = 6;
/// The most columns of the chart: a month of hours.
pub const COLUMNS: usize = 31 * 24;

const SCRIPTS: [&str; 7] = [
    include_str!("page/js/format.js"),
    include_str!("page/js/dom.js"),
    include_str!("page/js/paint.js"),
    include_str!("page/js/chart.js"),
    include_str!("page/js/save.js"),
    include_str!("page/js/grid.js"),
    include_str!("page/js/ledger.js"),
];

#[derive(Serialize)]
struct Data {
    chart: Chart,
    grids: Vec<Grid>,
}

#[derive(Serialize)]
struct Chart {
    /// The time when the first column begins, seconds since 1970.
    begin: i64,
    /// The length of a column.
    seconds: i64,
    length: String,
    groups: Vec<Group>,
    columns: Vec<Moment>,
}

#[derive(Default, Serialize)]
struct Group {
    name: String,
    /// True if it is the sum of those that have no colour.
    others: bool,
    /// Bytes written, in each column.
    bytes: Vec<u64>,
}

/// Holds what is known of one column of time.
#[derive(Serialize)]
struct Moment {
    /// The time for which the device was watched, ms: a column is as wide as its part of the time.
    watched_ms: u64,
    /// Bytes that the kernel counted as written; None if nothing can be compared.
    kernel: Option<u64>,
    /// Number of hours that cannot be compared.
    uncounted: u64,
    lost: u64,
    gaps: u64,
    gap_ms: u64,
    gap_write_bytes: Option<u64>,
    restarts: u64,
}

/// Returns the page of a ledger: of these sums, over this time by the same groups. `title` is shown, and the lines of the `summary`.
///
/// # Errors
/// Returns an error if a figure cannot be represented in JSON.
pub fn ledger(
    title: &str,
    summary: &[String],
    sums: &Sums,
    timeline: &Timeline,
) -> Result<String, Error> {
    let time = &sums.time;
    let is_whole = time.lost == 0 && time.gaps == 0 && time.uncounted_hours == 0;
    let (groups, hours) = (sums.table()?, hours(sums)?);
    let data = Data {
        chart: chart(timeline),
        grids: vec![
            Grid::new("Groups", None, groups),
            Grid::new("Hours", Some(HOURS), hours),
        ],
    };
    let page = Page {
        template: include_str!("page/ledger.html"),
        scripts: &SCRIPTS,
        data: serde_json::to_string(&data)?,
    };
    page.render(minijinja::context! { title, summary, is_whole })
}

const HOURS: &str = "For how long the device was watched, what the kernel counted meanwhile, what was lost, and the gap before, if nobody had watched.";

/// Returns the table of the hours, with times that can be read.
fn hours(sums: &Sums) -> PolarsResult<Table> {
    let mut table = sums.hours()?;
    let Ok(hours) = table.frame.column("hour") else {
        return Ok(table);
    };
    let hours = hours.cast(&DataType::Int64)?;
    let texts = hours.i64()?.iter().map(|us| {
        let time = DateTime::from_timestamp_micros(us?)?;
        Some(time.to_rfc3339_opts(SecondsFormat::Secs, true))
    });
    let texts: Vec<Option<String>> = texts.collect();
    let texts: Column = Series::new("hour".into(), texts).into_column();
    table.frame.with_column(texts)?;
    Ok(table)
}

fn chart(timeline: &Timeline) -> Chart {
    let mut groups: Vec<Group> = Vec::new();
    let mut others = Group {
        name: String::new(),
        others: true,
        bytes: vec![0; timeline.times.len()],
    };
    let mut left = 0_usize;
    for row in timeline.rows.iter().filter(|row| row.total > 0) {
        if groups.len() < DRAWN {
            groups.push(Group {
                name: row.name(),
                others: false,
                bytes: row.write_bytes.clone(),
            });
            continue;
        }
        left.tally(1);
        for (sum, bytes) in others.bytes.iter_mut().zip(&row.write_bytes) {
            sum.tally(*bytes);
        }
    }
    if left > 0 {
        others.name = format!("{left} others");
        groups.push(others);
    }
    Chart {
        begin: timeline.begin,
        seconds: timeline.seconds,
        length: timeline.length(),
        groups,
        columns: timeline.times.iter().map(moment).collect(),
    }
}

fn moment(time: &Option<Time>) -> Moment {
    let is_watched = time.is_some();
    let time = time.unwrap_or_default();
    let is_counted = is_watched && time.kernel_write_bytes > 0 || time.uncounted_hours == 0;
    Moment {
        watched_ms: time.watched_ms,
        kernel: Some(time.kernel_write_bytes).filter(|_| is_watched && is_counted),
        uncounted: time.uncounted_hours,
        lost: time.lost,
        gaps: time.gaps,
        gap_ms: time.gap_ms,
        gap_write_bytes: Some(time.gap_write_bytes)
            .filter(|_| time.gaps > 0 && time.uncounted_gaps == 0),
        restarts: time.restarts,
    }
}
