// SPDX-License-Identifier: MIT OR Apache-2.0
//! The line that is shown while recording: for how long, what was written since, and what was lost.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{DecimalBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use mostrace_bundle::manifest::PROGRESS;
use signal_hook::SigId;
use signal_hook::consts::SIGUSR1;
use signal_hook::low_level;

use super::Progress;
use crate::machine::device::Device;
use crate::record::counters::written_to;

/// The time between two updates on a terminal.
const EVERY: Duration = Duration::from_millis(200);
/// The time between two lines.
const LINE: Duration = Duration::from_secs(1);

/// The way in which it is shown.
#[derive(Debug)]
enum Shown {
    OnTerminal(ProgressBar),
    EachSecond,
    OnRequest(Request),
    Never,
}

/// Notices a SIGUSR1.
#[derive(Debug)]
struct Request {
    came: Arc<AtomicBool>,
    handler: Option<SigId>,
}

impl Request {
    /// Begins with a request, so that the beginning of the recording is shown too.
    fn new() -> Request {
        let came = Arc::new(AtomicBool::new(true));
        // Without a handler, there is no answer.
        let handler = signal_hook::flag::register(SIGUSR1, Arc::clone(&came)).ok();
        Request { came, handler }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if let Some(handler) = self.handler.take() {
            low_level::unregister(handler);
        }
    }
}

/// The line.
#[derive(Debug)]
pub(crate) struct Recording {
    how: Shown,
    device: Device,
    began: Instant,
    /// What the kernel had counted as written before; None if it does not count.
    before: Option<u64>,
    shown: Option<Instant>,
}

impl Recording {
    /// Makes the line, which may never be shown.
    pub fn new(progress: Progress, has_command: bool, device: &Device) -> Recording {
        let how = match progress {
            Progress::Lines => Shown::EachSecond,
            Progress::Asked => Shown::OnRequest(Request::new()),
            _ if progress.of_recording(has_command) => on_terminal(),
            _ => Shown::Never,
        };
        Recording {
            how,
            device: device.clone(),
            began: Instant::now(),
            before: written_to(device),
            shown: None,
        }
    }

    /// Returns the time until the next [`Recording::show`] is due. It is not always due, because asking the kernel for losses has a
    /// cost.
    pub fn due_in(&self) -> Duration {
        let every = match &self.how {
            Shown::Never => return Duration::MAX,
            Shown::OnRequest(request) if request.came.load(Ordering::Relaxed) => {
                return Duration::ZERO;
            }
            // The signal itself wakes the recorder.
            Shown::OnRequest(_) => return Duration::MAX,
            Shown::OnTerminal(_) => EVERY,
            Shown::EachSecond => LINE,
        };
        let since = self.shown.map_or(every, |shown| shown.elapsed());
        every.saturating_sub(since)
    }

    /// Shows the line. Events that wait for the end of the recording are not counted yet, so the kernel's counters tell what was
    /// written.
    pub fn show(&mut self, lost: u64) {
        self.shown = Some(Instant::now());
        let since = |now: u64| Some(now.saturating_sub(self.before?));
        let written = written_to(&self.device).and_then(since);
        let line = line(self.began.elapsed(), written, lost);
        match &self.how {
            Shown::OnTerminal(bar) => {
                bar.set_message(format!("{line}; Ctrl-C ends"));
                bar.tick();
                return;
            }
            Shown::OnRequest(request) => request.came.store(false, Ordering::Relaxed),
            Shown::EachSecond | Shown::Never => {}
        }
        // Whoever listened may be gone.
        let _ = writeln!(std::io::stderr(), "{PROGRESS}{line}");
    }

    /// Removes the line.
    pub fn finish(&self) {
        if let Shown::OnTerminal(bar) = &self.how {
            bar.finish_and_clear();
        }
    }
}

/// Makes the line of a terminal; if stderr is none, it is never shown.
fn on_terminal() -> Shown {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    // A wide message is cut to the terminal's width.
    if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
        bar.set_style(style);
    }
    match bar.is_hidden() {
        true => Shown::Never,
        false => Shown::OnTerminal(bar),
    }
}

fn line(lasted: Duration, written: Option<u64>, lost: u64) -> String {
    let written = match written {
        Some(bytes) => format!("{} written, ", DecimalBytes(bytes)),
        None => String::new(),
    };
    format!(
        "{}, {written}{} lost",
        time(lasted.as_secs()),
        HumanCount(lost)
    )
}

fn time(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_for_how_long_how_much_and_what_is_lost() {
        let of = |seconds, written, lost| line(Duration::from_secs(seconds), written, lost);
        assert_eq!(of(3, Some(2_100_000), 0), "3 s, 2.10 MB written, 0 lost");
        assert_eq!(of(125, None, 1234), "2 min 5 s, 1,234 lost");
        let long = of(90_061, Some(u64::MAX), u64::MAX);
        assert!(long.starts_with("25 h 1 min, 18.45 EB"), "{long}");
        assert!(long.len() < 66, "{long}");
    }
}
