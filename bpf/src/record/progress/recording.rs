// SPDX-License-Identifier: MIT OR Apache-2.0
//! The line that shows the events, entries and losses while recording.

use std::time::{Duration, Instant};

use indicatif::{DecimalBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::sink::Counts;

const EVERY: Duration = Duration::from_millis(200);

/// The line.
#[derive(Debug)]
pub(crate) struct Recording {
    bar: ProgressBar,
    shown: Instant,
}

impl Recording {
    /// Makes the line, which may be invisible.
    pub fn new(shown: bool) -> Recording {
        let target = match shown {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}") {
            bar.set_style(style);
        }
        Recording {
            bar,
            shown: Instant::now(),
        }
    }

    /// Returns true if the next [`Recording::show`] is due; it is not always due, because asking the kernel for losses has a cost.
    pub fn is_due(&self) -> bool {
        !self.bar.is_hidden() && self.shown.elapsed() >= EVERY
    }

    /// Shows the counts.
    pub fn show(&mut self, events: u64, entries: &Counts, lost: u64) {
        let entries: String = entries
            .iter()
            .map(|(name, kept)| format!("{} {}  ", name.replace('_', " "), HumanCount(*kept)))
            .collect();
        let (events, lost) = (HumanCount(events), HumanCount(lost));
        self.say(format!("events {events}  {entries}lost {lost}"));
    }

    /// Shows how much waits to be counted at the end.
    pub fn show_waiting(&mut self, bytes: u64, lost: u64) {
        let (bytes, lost) = (DecimalBytes(bytes), HumanCount(lost));
        self.say(format!("records {bytes}  lost {lost}"));
    }

    fn say(&mut self, message: String) {
        self.shown = Instant::now();
        self.bar.set_message(message);
        self.bar.tick();
    }

    /// Removes the line.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
