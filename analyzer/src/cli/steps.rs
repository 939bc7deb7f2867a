// SPDX-License-Identifier: MIT OR Apache-2.0
//! A progress bar for what counts its steps itself, drawn by a thread of its own.

use std::sync::mpsc::{Sender, channel};
use std::thread::Scope;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Between two looks; shorter work shows nothing.
const TICK: Duration = Duration::from_millis(500);

/// Draws until it is dropped, and then erases. On a terminal alone.
pub struct Steps {
    // Dropping it ends the thread.
    _going: Sender<()>,
}

impl Steps {
    /// Asks `done` now and then.
    pub fn show<'scope>(
        scope: &'scope Scope<'scope, '_>,
        total: u64,
        done: impl Fn() -> u64 + Send + 'scope,
    ) -> Steps {
        let (going, gone) = channel::<()>();
        // It hides itself where stderr is no terminal.
        let bar = ProgressBar::new(total);
        // The template is sound: without one the bar has its own.
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len} {eta}") {
            bar.set_style(style);
        }
        if !bar.is_hidden() {
            scope.spawn(move || {
                while gone.recv_timeout(TICK) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                    bar.set_position(done());
                }
                bar.finish_and_clear();
            });
        }
        Steps { _going: going }
    }
}
