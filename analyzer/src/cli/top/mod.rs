// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace top`: a recording, looked at while it goes on.

use std::io::{IsTerminal, stdout};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mostrace::live::{View, follow};
use mostrace_bundle::temporary::TempFolder;
use mostrace_capture::{Options, Outcome, Progress, Segments, Size, record};
use signal_hook::consts::SIGINT;
use signal_hook::low_level::{raise, unregister};

mod figures;
mod plain;
mod screen;
mod segments;
mod show;

use super::{UsageError, say};
use segments::Arriving;
use show::Show;

/// Look at what reaches a device as it happens: by class, by process and file that caused it, and how much it is amplified.
///
/// Needs root. What is shown is one to two intervals old: a system call is told of when it returns. `now` is of the last
/// interval, `all` since the beginning.
///
/// Keys: Tab: files or processes first; a: order by all or by now; q, Esc, Ctrl-C: end.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  mostrace top -d /data
  mostrace top -d /dev/sda3 -b -w 60 >lines.txt
  mostrace top -d /data -o day.most")]
pub struct Top {
    /// The whole disk or partition to look at; or a mount point or a file, for the device that it is on
    #[arg(short, long, value_name = "DEV|PATH")]
    device: PathBuf,
    /// How long an interval is
    #[arg(short, long, value_name = "SECS", default_value = "1", value_parser = interval)]
    interval: Duration,
    /// Print plain lines, some for each interval, as where there is no terminal
    #[arg(short, long)]
    batch: bool,
    /// Stop after SECS seconds
    #[arg(short = 'w', long = "wait", value_name = "SECS", value_parser = interval)]
    wait: Option<Duration>,
    /// So many processes and files in plain lines
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5)]
    lines: usize,
    /// Keep the recording: its segments are NAME.0001.most and so on, one for each interval
    #[arg(short, long, value_name = "NAME.most")]
    output: Option<PathBuf>,
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|e| format!("{e}"))?;
    let duration = Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())?;
    match duration < Duration::from_millis(100) {
        true => Err("less than a tenth of a second".into()),
        false => Ok(duration),
    }
}

impl Top {
    /// Runs until the time is up, or the user ends it.
    ///
    /// # Errors
    /// The recording cannot be made, or not be read.
    pub fn run(&self) -> anyhow::Result<()> {
        // In memory, where there is such a place: what is written to the device itself would be seen.
        let folder = TempFolder::in_memory()?;
        let output = match &self.output {
            Some(output) => output.clone(),
            None => folder.path().join("top.most"),
        };
        if output.extension().is_none_or(|ending| ending != "most") {
            let what = "the segments of a view are folders, NAME.most";
            return Err(UsageError(format!("{}: {what}", output.display())).into());
        }
        mostrace_capture::check_output(&output)?;
        let options = Options {
            device: self.device.clone(),
            output: output.clone(),
            limit: self.wait,
            segments: Some(Segments {
                each: Size::Time(self.interval),
                keep: None,
            }),
            snapshot: false,
            progress: Progress::Never,
            ..Options::default()
        };
        // Ctrl-C before the recording has begun must not leave the terminal as it is.
        let stop = signal_hook::flag::register(SIGINT, Arc::default())?;
        let recorder = thread::spawn(move || record(&options));
        let watched = self.watch(output, &recorder);
        let outcome = join(recorder)?;
        unregister(stop);
        watched?;
        self.report(&outcome);
        Ok(())
    }

    fn watch(
        &self,
        output: PathBuf,
        recorder: &JoinHandle<Result<Outcome, mostrace_capture::Error>>,
    ) -> anyhow::Result<()> {
        let (views, shown) = channel::<View>();
        let mut show: Box<dyn Show> = match self.batch || !stdout().is_terminal() {
            true => Box::new(plain::Lines::new(self.lines)),
            false => Box::new(screen::Screen::new(self.device.display().to_string())?),
        };
        thread::scope(|scope| {
            let arriving = Arriving::new(output, self.output.is_some(), recorder);
            let follower = scope.spawn(move || follow(arriving, |view| drop(views.send(view))));
            let shown = show.run(&shown);
            // The terminal is put back.
            drop(show);
            // If the user ended the view, the recording goes on.
            raise(SIGINT)?;
            shown?;
            match follower.join() {
                Ok(followed) => Ok(followed?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    fn report(&self, outcome: &Outcome) {
        if self.output.is_some() {
            return super::record::report(outcome);
        }
        for (what, lost) in outcome
            .manifest
            .losses
            .iter()
            .filter(|(_, lost)| **lost > 0)
        {
            say(&format!("lost: {what} {lost}"));
        }
        for what in &outcome.manifest.interference {
            say(&format!("INTERFERED: {what}"));
        }
    }
}

fn join<T>(thread: JoinHandle<T>) -> T {
    match thread.join() {
        Ok(outcome) => outcome,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
