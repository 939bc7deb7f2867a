// SPDX-License-Identifier: MIT OR Apache-2.0
//! A progress bar on the terminal for work that takes longer than a second.

use std::cell::Cell;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mostrace_trace::reading::Progress;

/// Shorter work shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// A progress bar, which is erased when it is dropped.
pub struct Bar {
    bar: ProgressBar,
    began: Instant,
    shown: Cell<bool>,
}

impl Bar {
    /// Makes a bar that is not shown yet.
    pub fn new() -> Bar {
        // The template is valid; a default one would be used otherwise.
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent}% {eta}");
        let bar = ProgressBar::hidden();
        Bar {
            bar: style.map_or_else(|_| bar.clone(), |style| bar.clone().with_style(style)),
            began: Instant::now(),
            shown: Cell::new(false),
        }
    }

    /// Updates the progress.
    pub fn at(&self, progress: Progress) {
        if !self.shown.get() && self.began.elapsed() > PATIENCE {
            // indicatif draws only on a terminal.
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
