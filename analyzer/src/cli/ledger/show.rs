// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace ledger show`: sums over the days.

use std::convert::Infallible;
use std::path::PathBuf;

use chrono::NaiveDate;
use clap::builder::PossibleValuesParser;
use indicatif::{HumanBytes, HumanDuration};
use mostrace::export::Format;
use mostrace::ledger::{COLUMNS, Days, Sums};

use crate::cli::out::OutArgs;
use crate::cli::say;

/// Print what was written, by application, layer, day and more
///
/// Rows without a command are what nobody is known to have caused. Calls have rows too: `asked_bytes` is what was
/// passed to write(), and `durable_…` how long fsync and its like took; the percentiles are at most 6.25 % too high.
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
    #[command(flatten)]
    out: OutArgs,
}

impl Show {
    /// Runs the command.
    pub fn run(&self) -> anyhow::Result<()> {
        let mut out = self.out.create()?;
        let by: Vec<&str> = self.by.iter().map(String::as_str).collect();
        let sums = Sums::new(&Days::new(&self.folder), [self.from, self.to], &by)?;
        let table = match self.hours {
            true => sums.hours()?,
            false => sums.table()?,
        };
        let format = self.out.format();
        format.write_all(&mut out, [Ok::<_, Infallible>(table)])?;
        if format == Format::Table {
            say(&summary(&sums));
        }
        Ok(())
    }
}

/// Returns what is known of the time as a whole.
fn summary(sums: &Sums) -> String {
    let watched = std::time::Duration::from_millis(sums.watched_ms);
    let here = sums.all.write_bytes.saturating_add(sums.all.zeroed_bytes);
    let missing = sums.kernel_write_bytes.saturating_sub(here);
    let counted = match missing {
        0 => "the kernel counted no more than is here".into(),
        missing => format!(
            "{} that the kernel counted are missing",
            HumanBytes(missing)
        ),
    };
    format!(
        "watched for {}: {} written; {counted}; {} records lost",
        HumanDuration(watched),
        HumanBytes(sums.all.write_bytes),
        sums.lost
    )
}
