// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace ledger status` and `mostrace ledger stop`: show and end the recorder that keeps a ledger.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, SecondsFormat};
use indicatif::HumanDuration;
use mostrace_bundle::health;
use mostrace_tables::ledger::{Days, Reading, Sums};

use super::lock::Lock;

/// Say who keeps a ledger, and when its last hour ended
#[derive(clap::Args)]
pub struct Status {
    /// The folder of the ledger
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// End the recorder that keeps a ledger, and wait until it has added the hour as far as it came
#[derive(clap::Args)]
pub struct Stop {
    /// The folder of the ledger
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Status {
    /// Runs the command.
    pub fn run(&self) -> anyhow::Result<()> {
        let days = Days::open(&self.folder, super::TRIAL)?;
        let list = days.list()?;
        let (count, ends) = (list.len(), days.ends()?);
        let newest = list.last().copied();
        let drive = drive(&Sums::new(&days, [newest, None], &[])?);
        let keeper = keeper(&self.folder)?;
        let last = ends.iter().max_by_key(|end| end.unix_ms);
        crate::print(|out| {
            let text = format!("{keeper}\n{count} days; {}\n{drive}", ended(last));
            out.extend(text.into_bytes());
            Ok(())
        })
    }
}

/// Returns a line that names the recorder that keeps the ledger.
fn keeper(folder: &std::path::Path) -> anyhow::Result<String> {
    Ok(match Lock::holder(folder)? {
        None => "nobody keeps this ledger now".into(),
        Some(pid) => format!("process {pid} keeps this ledger"),
    })
}

/// Returns a line about how worn the drive was at the end of the last hour, by its own counters; it is empty if the drive has none.
fn drive(sums: &Sums) -> String {
    let Some(drive) = sums.drive() else {
        return String::new();
    };
    let wear: Vec<String> = health::wear(|gauge| drive.latest(gauge)).collect();
    match wear.is_empty() {
        true => String::new(),
        false => format!("the drive itself: {}\n", wear.join(", ")),
    }
}

fn ended(last: Option<&Reading>) -> String {
    let Some(last) = last else {
        return "no hour has ended yet".into();
    };
    let end = Duration::from_millis(last.unix_ms);
    let ms = i64::try_from(last.unix_ms).unwrap_or(i64::MAX);
    let time = DateTime::from_timestamp_millis(ms).unwrap_or_default();
    let time = time.to_rfc3339_opts(SecondsFormat::Secs, true);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let ago = HumanDuration(now.saturating_sub(end));
    format!("the last hour in it ended at {time}, {ago} ago")
}

impl Stop {
    /// Runs the command.
    pub fn run(&self) -> anyhow::Result<()> {
        Lock::end_holder(Days::open(&self.folder, super::TRIAL)?.folder())
    }
}
