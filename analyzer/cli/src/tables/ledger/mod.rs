// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace ledger`: what each application writes, by the hour, for weeks.

mod chart;
#[cfg(target_os = "linux")]
mod keep;
#[cfg(target_os = "linux")]
mod lock;
#[cfg(target_os = "linux")]
mod running;
mod show;
#[cfg(target_os = "linux")]
mod status;

use std::path::{Path, PathBuf};
use std::process::Command;

use mostrace_tables::ledger::{Days, Limits, Trial, try_days};

/// Keep a ledger: what each application caused, hour by hour, for weeks
///
/// The events are summed up and forgotten. DIR has a Parquet file for each day, which other programs read too;
/// docs/LEDGER.md describes its columns.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  mostrace ledger start /var/lib/mostrace -d /data --every 1h --keep 90d
  mostrace ledger status /var/lib/mostrace
  mostrace ledger show /var/lib/mostrace --by command,layer
  mostrace ledger show /var/lib/mostrace --by day,package --from 2026-11-01
  mostrace ledger show /var/lib/mostrace --by package --chart
  mostrace ledger check /var/lib/mostrace limits.toml")]
pub struct Ledger {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    #[cfg(target_os = "linux")]
    Start(keep::Start),
    #[cfg(target_os = "linux")]
    Stop(status::Stop),
    #[cfg(target_os = "linux")]
    Status(status::Status),
    Show(show::Show),
    Check(Check),
    /// Read days from stdin under bounds, as every other verb has it done first
    #[command(hide = true)]
    TryDays,
}

/// Compare a ledger with limits; the exit status is 3 if one is exceeded
///
/// The file has a [[limit]] for each of them, with `max_write_bytes` or `max_flushes`, for example
///
///   [[limit]]
///   by = "package"            # each package, command, uid …; by default each command
///   of = "org.example.chat"   # only this one
///   per = "day"               # or "hour"; by default a day
///   max_write_bytes = "500M"
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
struct Check {
    /// The folder of the ledger
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The file of limits
    #[arg(value_name = "LIMITS.toml")]
    limits: PathBuf,
}

/// The exit status if a limit was exceeded.
const OVER: u8 = 3;

impl Ledger {
    /// Runs the command and returns its exit status.
    ///
    /// # Errors
    /// Returns an error if the ledger cannot be kept or read.
    pub fn run(self) -> anyhow::Result<u8> {
        match self.verb {
            #[cfg(target_os = "linux")]
            Verb::Start(start) => start.run().map(|()| 0),
            #[cfg(target_os = "linux")]
            Verb::Stop(stop) => stop.run().map(|()| 0),
            #[cfg(target_os = "linux")]
            Verb::Status(status) => status.run().map(|()| 0),
            Verb::Show(show) => show.run().map(|()| 0),
            Verb::Check(check) => check.run(),
            Verb::TryDays => Ok(try_days()),
        }
    }
}

/// Has days tried by this program itself, in another process.
const TRIAL: Trial = Trial::By(|| {
    let mut command = Command::new(program());
    command.args(["ledger", "try-days"]);
    command
});

/// Returns the path of this program; on Linux one that stays the same if the file is replaced.
fn program() -> PathBuf {
    match cfg!(target_os = "linux") {
        true => "/proc/self/exe".into(),
        false => std::env::current_exe().unwrap_or_default(),
    }
}

/// Opens a ledger to read it.
/// Opens a ledger to sum it up, with the hour that is not over if its keeper tells it.
fn open_with_running(folder: &Path) -> anyhow::Result<Days> {
    let days = Days::open(folder, TRIAL)?;
    #[cfg(target_os = "linux")]
    let days = {
        let running = running::ask(days.folder());
        days.with_running(running)
    };
    Ok(days)
}

impl Check {
    fn run(&self) -> anyhow::Result<u8> {
        let limits = Limits::read(&self.limits)?;
        let over = limits.check(&Days::open(&self.folder, TRIAL)?)?;
        for over in &over {
            crate::print(|out| {
                out.extend(format!("{over}\n").into_bytes());
                Ok(())
            })?;
        }
        Ok(if over.is_empty() { 0 } else { OVER })
    }
}
