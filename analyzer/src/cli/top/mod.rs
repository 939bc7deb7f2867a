// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace top`: a recording, looked at while it goes on.

use std::io::{IsTerminal, stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mostrace::live::{View, follow};
use mostrace_bundle::temporary::TempFolder;
use mostrace_bundle::units;
use mostrace_capture::{Options, Outcome, Progress, Segments, Size, record};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::low_level::{raise, unregister};

mod busiest;
mod figures;
mod head;
mod list;
mod plain;
mod screen;
mod segments;
mod show;
mod shown;

use super::{UsageError, say};
use segments::Arriving;
use show::Show;

/// Look at what reaches a device as it happens: by class, by process and file that caused it, and how much it is amplified.
///
/// Needs root. What is shown is one to two intervals old: a system call is told of when it returns. `now` is of the last
/// interval, `all` since the beginning.
///
/// Keys: ? tells all; Tab: files or processes first; s: order by the next column; /: search; Space: hold; q, Esc, Ctrl-C: end.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  mostrace top
  mostrace top -d /data
  mostrace top -d /dev/sda3 -b -w 60 >lines.txt
  mostrace top -d /data -o day.most")]
pub struct Top {
    /// The whole disk or partition to look at; or a mount point or a file, for the device that it is on; by default the disk that most
    /// was written to since the machine was started
    #[arg(short, long, value_name = "DEV|PATH")]
    device: Option<PathBuf>,
    /// How long an interval is, as 1, 500ms, 10s
    #[arg(short, long, value_name = "TIME", default_value = "1", value_parser = interval)]
    interval: Duration,
    /// Print plain lines, some for each interval, as where there is no terminal
    #[arg(short, long)]
    batch: bool,
    /// Stop after so long, as 60, 10m, 1h
    #[arg(short = 'w', long = "wait", value_name = "TIME", value_parser = units::time)]
    wait: Option<Duration>,
    /// So many processes and files in plain lines
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5)]
    lines: usize,
    /// Keep the recording: its segments are NAME.0001.most and so on, one for each interval
    #[arg(short, long, value_name = "NAME.most")]
    output: Option<PathBuf>,
}

/// They end the view, and the recording too.
const ENDS: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

fn interval(text: &str) -> Result<Duration, String> {
    let duration = units::time(text)?;
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
        let device = match &self.device {
            Some(device) => device.clone(),
            None => busiest::busiest()?,
        };
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
            device: device.clone(),
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
        // One of these before the recording has begun must not leave the terminal as it is.
        let is_over = Arc::new(AtomicBool::new(false));
        let register = |signal| signal_hook::flag::register(signal, Arc::clone(&is_over));
        let handlers = ENDS.map(register);
        let recorder = thread::spawn(move || record(&options));
        let watched = self.watch(&device, output, &recorder, &is_over);
        let outcome = join(recorder)?;
        for handler in handlers {
            unregister(handler?);
        }
        watched?;
        self.report(&outcome);
        Ok(())
    }

    fn watch(
        &self,
        device: &Path,
        output: PathBuf,
        recorder: &JoinHandle<Result<Outcome, mostrace_capture::Error>>,
        is_over: &Arc<AtomicBool>,
    ) -> anyhow::Result<()> {
        let (views, shown) = channel::<View>();
        let mut show: Box<dyn Show> = match self.batch || !stdout().is_terminal() {
            true => Box::new(plain::Lines::new(self.lines)),
            false => {
                let device = device.display().to_string();
                Box::new(screen::Screen::new(device, Arc::clone(is_over))?)
            }
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
