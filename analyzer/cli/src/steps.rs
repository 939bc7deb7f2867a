// SPDX-License-Identifier: MIT OR Apache-2.0
//! A progress bar for work that counts its own steps, drawn by a separate thread.

use std::sync::mpsc::{Sender, channel};
use std::thread::Scope;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Time between two updates; shorter work shows no bar.
const TICK: Duration = Duration::from_millis(500);

/// Draws the bar on a terminal until it is dropped, and erases it then.
pub struct Steps {
    // Dropping the sender ends the thread.
    _going: Sender<()>,
}

impl Steps {
    /// Starts the bar, which calls `done` regularly.
    pub fn show<'scope>(
        scope: &'scope Scope<'scope, '_>,
        total: u64,
        done: impl Fn() -> u64 + Send + 'scope,
    ) -> Steps {
        let (going, gone) = channel::<()>();
        // The bar hides itself if stderr is not a terminal.
        let bar = ProgressBar::new(total);
        // The template is valid; a default one would be used otherwise.
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
