// SPDX-License-Identifier: MIT OR Apache-2.0
//! The line that is shown while recording: for how long, what was written since, and what was lost.

use std::time::{Duration, Instant};

use indicatif::{DecimalBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::machine::device::Device;
use crate::record::counters::written_to;

const EVERY: Duration = Duration::from_millis(200);

/// The line.
#[derive(Debug)]
pub(crate) struct Recording {
    bar: ProgressBar,
    device: Device,
    began: Instant,
    /// What the kernel had counted as written before; None if it does not count.
    before: Option<u64>,
    shown: Instant,
}

impl Recording {
    /// Makes the line, which may be invisible.
    pub fn new(shown: bool, device: &Device) -> Recording {
        let target = match shown {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        // A wide message is cut to the terminal's width.
        if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
            bar.set_style(style);
        }
        let now = Instant::now();
        Recording {
            bar,
            device: device.clone(),
            began: now,
            before: written_to(device),
            shown: now,
        }
    }

    /// Returns true if the next [`Recording::show`] is due; it is not always due, because asking the kernel for losses has a cost.
    pub fn is_due(&self) -> bool {
        !self.bar.is_hidden() && self.shown.elapsed() >= EVERY
    }

    /// Shows the line. Events that wait for the end of the recording are not counted yet, so the kernel's counters tell what was
    /// written.
    pub fn show(&mut self, lost: u64) {
        self.shown = Instant::now();
        let since = |now: u64| Some(now.saturating_sub(self.before?));
        let written = written_to(&self.device).and_then(since);
        self.bar
            .set_message(line(self.began.elapsed(), written, lost));
        self.bar.tick();
    }

    /// Removes the line.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn line(lasted: Duration, written: Option<u64>, lost: u64) -> String {
    let written = match written {
        Some(bytes) => format!("{} written, ", DecimalBytes(bytes)),
        None => String::new(),
    };
    format!(
        "{}, {written}{} lost; Ctrl-C ends",
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
        assert_eq!(
            of(3, Some(2_100_000), 0),
            "3 s, 2.10 MB written, 0 lost; Ctrl-C ends"
        );
        assert_eq!(of(125, None, 1234), "2 min 5 s, 1,234 lost; Ctrl-C ends");
        let long = of(90_061, Some(u64::MAX), u64::MAX);
        assert!(long.starts_with("25 h 1 min, 18.45 EB"), "{long}");
        assert!(long.len() < 80, "{long}");
    }
}
