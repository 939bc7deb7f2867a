// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace top`: a live view of a recording.

use std::io::{IsTerminal, Write, stdout};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mostrace_bundle::temporary::TempFolder;
use mostrace_bundle::units;
use mostrace_capture::{Options, Outcome, Progress, Segments, Size, record};
use mostrace_trace::live::{View, Views, follow};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::low_level::{raise, unregister};

mod busiest;
mod cgroup;
mod figures;
mod head;
mod list;
mod plain;
mod screen;
mod show;
mod shown;

use super::segments::Arriving;
use super::{say, usage};
use show::Show;

/// What the lines are of, beside files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// Processes; those of one command are added up
    #[default]
    Process,
    /// Cgroups: containers and services by their names
    Cgroup,
}

impl By {
    fn word(self) -> &'static str {
        match self {
            By::Process => "process",
            By::Cgroup => "cgroup",
        }
    }
}

/// Time between two checks whether an interval has ended.
const LOOK: Duration = Duration::from_millis(50);

/// Watch what reaches a device as it happens: by class, by process and file that caused it, and with its amplification.
///
/// Needs root. The figures are one to two intervals old, because a system call is recorded when it returns.
/// `now` is the last interval, `all` the time since the beginning.
///
/// When it ends, what was written in all is printed.
///
/// Keys: ? help; Tab: files or processes first; s: sort by the next column; /: search; Space: pause; q, Esc, Ctrl-C: quit.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  mostrace top
  mostrace top -d /data
  mostrace top --by cgroup
  mostrace top -d /dev/sda3 -b -w 60 >lines.txt
  mostrace top -d /data -o day.most")]
pub struct Top {
    /// The whole disk or partition to watch, or a mount point or a file for the device that it is on; by default the disk to
    /// which most was written since the machine was started
    #[arg(short, long, value_name = "DEV|PATH")]
    device: Option<PathBuf>,
    /// The length of an interval, such as 1, 500ms, 10s
    #[arg(short, long, value_name = "TIME", default_value = "1", value_parser = interval)]
    interval: Duration,
    /// Show processes, or the containers and services (cgroups v2) that they are in
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "process|cgroup",
        hide_possible_values = true
    )]
    by: By,
    /// Print plain lines for each interval, as if there were no terminal
    #[arg(short, long)]
    batch: bool,
    /// Stop after this time, such as 60, 10m, 1h
    #[arg(short = 'w', long = "wait", value_name = "TIME", value_parser = units::time)]
    wait: Option<Duration>,
    /// Number of processes and files to print in plain lines
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5)]
    lines: usize,
    /// Keep the recording: its segments are NAME.0001.most and so on, one for each interval
    #[arg(short, long, value_name = "NAME.most")]
    output: Option<PathBuf>,
}

/// Signals that end the view and the recording.
const ENDS: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

fn interval(text: &str) -> Result<Duration, String> {
    let duration = units::time(text)?;
    match duration < Duration::from_millis(100) {
        true => Err("less than a tenth of a second".into()),
        false => Ok(duration),
    }
}

impl Top {
    /// Runs until the time is up or the user ends it.
    pub fn run(&self) -> anyhow::Result<()> {
        let device = match &self.device {
            Some(device) => device.clone(),
            None => busiest::busiest()?,
        };
        // The recording is kept in memory if possible, because writes to the device itself would be recorded.
        let folder = TempFolder::in_memory()?;
        let output = match &self.output {
            Some(output) => output.clone(),
            None => folder.path().join("top.most"),
        };
        if output.extension().is_none_or(|ending| ending != "most") {
            usage!(
                "{}: the segments must be folders, NAME.most",
                output.display()
            );
        }
        mostrace_capture::check_output(&output)?;
        let options = Options {
            device: device.clone(),
            output: output.clone(),
            limit: self.wait,
            segments: Some(Segments {
                each: Size::Time(self.interval),
                keep: None,
                memory: false,
            }),
            no_snapshot: true,
            progress: Progress::Never,
            ..Options::default()
        };
        // A signal before the recording has begun must not leave the terminal in raw mode.
        let is_over = Arc::new(AtomicBool::new(false));
        let register = |signal| signal_hook::flag::register(signal, Arc::clone(&is_over));
        let handlers = ENDS.map(register);
        let recorder = thread::spawn(move || record(&options));
        let watched = self.watch(&device, output, &recorder, &is_over);
        let outcome = recorder
            .join()
            .unwrap_or_else(|panic| resume_unwind(panic))?;
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
            true => Box::new(plain::Lines::new(self.by, self.lines)),
            false => {
                let device = device.display().to_string();
                Box::new(screen::Screen::new(device, self.by, Arc::clone(is_over))?)
            }
        };
        thread::scope(|scope| {
            let arriving = Arriving::new(output, self.output.is_some(), recorder, LOOK);
            let (by, mut names) = (self.by, cgroup::Names::new(Path::new("/")));
            let tell = move |mut view: View| {
                if by == By::Cgroup {
                    view.processes = names.name(&view.cgroups);
                }
                drop(views.send(view));
            };
            let follower = scope.spawn(move || follow(arriving, &mut Views::new(tell)));
            let last = show.run(&shown);
            // Dropping it restores the terminal.
            drop(show);
            // If the user ended the view, the recorder is still running and must be ended too.
            raise(SIGINT)?;
            let last = last?;
            follower
                .join()
                .unwrap_or_else(|panic| resume_unwind(panic))?;
            // What the user did not see any more counts.
            if let Some(view) = shown.try_iter().last().or(last) {
                let totals = plain::totals(&view, self.by, self.lines);
                // The terminal may be gone.
                let _ = stdout().write_all(totals.as_bytes());
            }
            Ok(())
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
