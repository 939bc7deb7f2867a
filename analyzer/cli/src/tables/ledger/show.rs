// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace ledger show`: sums over the days.

use std::io::Write;
use std::path::{Path, PathBuf};

use chrono::NaiveDate;
use clap::builder::PossibleValuesParser;
use indicatif::HumanDuration;
use mostrace_report::{LEDGER_COLUMNS, ledger};
use mostrace_tables::export::{Format, Output};
use mostrace_tables::ledger::{COLUMNS, Days, OTHERS, Sums, Time, Timeline};
use mostrace_trace::text::escape;
use mostrace_trace::text::size;

use super::chart;
use crate::tables::out::OutArgs;
use crate::tables::wrote;
use crate::{say, usage};

/// Print what was written, by application, layer, day and more
///
/// The running hour is included, as far as its last segment, if the same user keeps the ledger and asks.
/// Rows without a command have no known causer. Calls have rows too: `asked_bytes` counts what was passed to write(),
/// and `durable_…` is the time that fsync and the like took; the percentiles are at most 6.25 % too high.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Show {
    /// The folder of the ledger
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The columns by which rows are grouped
    #[arg(
        long,
        value_name = "COLUMN,…",
        value_delimiter = ',',
        default_value = "command",
        value_parser = PossibleValuesParser::new(COLUMNS)
    )]
    by: Vec<String>,
    /// The first day (UTC), such as 2026-11-25
    #[arg(long, value_name = "DAY")]
    from: Option<NaiveDate>,
    /// The last day
    #[arg(long, value_name = "DAY")]
    to: Option<NaiveDate>,
    /// Print the hours instead: for how long the device was watched, what the kernel counted, and what was lost
    #[arg(long, conflicts_with = "by")]
    hours: bool,
    /// Draw what was written over time instead, a line for each group
    #[arg(long, conflicts_with_all = ["hours", "format", "json"])]
    chart: bool,
    /// Write a page to look at in a browser instead: what was written over time by groups, and tables of groups and hours
    #[arg(long, value_name = "FILE.html", conflicts_with_all = ["hours", "chart", "format", "json", "output"])]
    page: Option<PathBuf>,
    #[command(flatten)]
    out: OutArgs,
}

impl Show {
    /// Runs the command.
    pub fn run(&self) -> anyhow::Result<()> {
        let by: Vec<&str> = self.by.iter().map(String::as_str).collect();
        let (days, span) = (
            super::open_with_running(&self.folder)?,
            [self.from, self.to],
        );
        if let Some(path) = &self.page {
            return self.page(path, &days, &by);
        }
        let mut out = self.out.create()?;
        if self.chart {
            let timeline = Timeline::new(&days, span, &by, chart::COLUMNS)?;
            return Ok(writeln!(out, "{}", chart::lines(&timeline).join("\n"))?);
        }
        let sums = Sums::new(&days, span, &by)?;
        let table = match self.hours {
            true => sums.hours()?,
            false => sums.table()?,
        };
        let format = self.out.format();
        format.write_one(&mut out, table)?;
        if format == Format::Table {
            say(&summary(&sums));
        }
        if let Some(path) = self.out.file() {
            wrote::tell(&path, wrote::opener(&path));
        }
        Ok(())
    }
}

impl Show {
    fn page(&self, path: &Path, days: &Days, by: &[&str]) -> anyhow::Result<()> {
        let mut out = Output::create(Some(path))?;
        if out.is_terminal() {
            usage!("a page is not for terminals: write it to a file (--page FILE.html) or a pipe");
        }
        let span = [self.from, self.to];
        let timeline = Timeline::new(days, span, by, LEDGER_COLUMNS)?;
        let sums = Sums::new(days, span, by)?;
        let summary: Vec<String> = summary(&sums).lines().map(str::to_owned).collect();
        let folder = escape(self.folder.as_os_str().as_encoded_bytes());
        let title = format!("Ledger {folder}, by {}", by.join(", "));
        out.page(&ledger(&title, &summary, &sums, &timeline)?)?;
        wrote::tell(path, "open it in a browser");
        Ok(())
    }
}

/// Returns a line about the whole time.
fn summary(sums: &Sums) -> String {
    let Time {
        watched_ms,
        uncounted_hours,
        lost,
        summed_up,
        ..
    } = sums.time;
    let summed_up = match summed_up {
        0 => String::new(),
        rows => format!("; {rows} small rows are summed up as {OTHERS}"),
    };
    let missing = match sums.missing_write_bytes() {
        0 => "the kernel counted no more than is here".into(),
        bytes => format!("{} that the kernel counted are missing", size(bytes as f64)),
    };
    let counted = match uncounted_hours {
        0 => missing,
        hours => format!("{missing}; {hours} hours cannot be compared with the kernel's counters"),
    };
    format!(
        "watched for {}{}: {} written; {counted}; {lost} records lost{summed_up}{}{}",
        duration(watched_ms),
        if sums.has_running {
            ", the running hour too"
        } else {
            ""
        },
        size(sums.all.write_bytes as f64),
        gaps(&sums.time),
        drive(sums)
    )
}

/// Returns a line about the drive's own counters, from the end of the first hour to the end of the last.
fn drive(sums: &Sums) -> String {
    let words = sums.drive().and_then(|health| health.words());
    words.map_or(String::new(), |words| {
        format!("\nthe drive itself: {words}")
    })
}

/// Returns a line about the times in which the device was not watched.
fn gaps(time: &Time) -> String {
    if time.gaps == 0 {
        return String::new();
    }
    let restarts = match time.restarts {
        0 => String::new(),
        n => format!(
            "; in {n} of them the counters began anew, and what was written before is not known"
        ),
    };
    let uncounted = match time.uncounted_gaps {
        0 => String::new(),
        n => format!("; {n} of them cannot be compared with the kernel's counters"),
    };
    format!(
        "\n{} gaps of {} together, in which the kernel counted {} written{uncounted}{restarts}",
        time.gaps,
        duration(time.gap_ms),
        size(time.gap_write_bytes as f64)
    )
}

fn duration(ms: u64) -> HumanDuration {
    HumanDuration(std::time::Duration::from_millis(ms))
}
