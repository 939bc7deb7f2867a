// SPDX-License-Identifier: MIT OR Apache-2.0
//! The progress line on stderr; nothing if stderr is no terminal.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::entries::Counts;

const EVERY: Duration = Duration::from_millis(200);

/// A line with events, entries and losses.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    shown: Instant,
}

impl Progress {
    pub fn new() -> Progress {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}") {
            bar.set_style(style);
        }
        Progress {
            bar,
            shown: Instant::now(),
        }
    }

    /// Whether it is time for the next [`Progress::show`].
    pub fn is_due(&self) -> bool {
        !self.bar.is_hidden() && self.shown.elapsed() >= EVERY
    }

    /// Shows the counts.
    pub fn show(&mut self, events: u64, entries: &Counts, lost: u64) {
        self.shown = Instant::now();
        let entries: String = entries
            .iter()
            .map(|(name, kept)| format!("{} {kept}  ", name.replace('_', " ")))
            .collect();
        self.bar
            .set_message(format!("events {events}  {entries}lost {lost}"));
        self.bar.tick();
    }

    /// Takes the line away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
