// SPDX-License-Identifier: MIT OR Apache-2.0
//! A progress bar on the terminal, for what takes longer than a second.

use std::cell::Cell;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mostrace::analysis::Progress;

/// Shorter work shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// Erased when it is dropped.
pub struct Bar {
    bar: ProgressBar,
    began: Instant,
    shown: Cell<bool>,
}

impl Bar {
    /// Not to be seen yet.
    pub fn new() -> Bar {
        // The template is sound: without one the bar has its own.
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent}% {eta}");
        let bar = ProgressBar::hidden();
        Bar {
            bar: style.map_or_else(|_| bar.clone(), |style| bar.clone().with_style(style)),
            began: Instant::now(),
            shown: Cell::new(false),
        }
    }

    /// Says how far the work is.
    pub fn at(&self, progress: Progress) {
        if !self.shown.get() && self.began.elapsed() > PATIENCE {
            // Draws on a terminal only.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.shown.set(true);
        }
        self.bar.set_message(progress.step);
        self.bar.set_length(progress.total);
        self.bar.set_position(progress.done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
