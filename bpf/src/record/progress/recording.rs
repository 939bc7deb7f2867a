// SPDX-License-Identifier: MIT OR Apache-2.0
//! While recording: a line with the events, entries and losses so far.

use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::sink::Counts;

const EVERY: Duration = Duration::from_millis(200);

/// The line.
#[derive(Debug)]
pub(crate) struct Recording {
    bar: ProgressBar,
    shown: Instant,
}

impl Recording {
    /// Makes the line, shown or not.
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

    /// Returns true if the next [`Recording::show`] is due: asking the kernel for losses is not free.
    pub fn is_due(&self) -> bool {
        !self.bar.is_hidden() && self.shown.elapsed() >= EVERY
    }

    /// Shows the counts.
    pub fn show(&mut self, events: u64, entries: &Counts, lost: u64) {
        self.shown = Instant::now();
        let entries: String = entries
            .iter()
            .map(|(name, kept)| format!("{} {}  ", name.replace('_', " "), HumanCount(*kept)))
            .collect();
        let (events, lost) = (HumanCount(events), HumanCount(lost));
        self.bar
            .set_message(format!("events {events}  {entries}lost {lost}"));
        self.bar.tick();
    }

    /// Takes the line away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
