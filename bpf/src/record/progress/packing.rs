// SPDX-License-Identifier: MIT OR Apache-2.0
//! The progress bar that is shown if packing takes longer than a second.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const PATIENCE: Duration = Duration::from_secs(1);

/// The bar.
#[derive(Debug)]
pub(crate) struct Packing {
    bar: ProgressBar,
    /// The time at which the bar will be shown; None once it is shown, or if it never will be.
    due: Option<Instant>,
}

impl Packing {
    /// Makes the bar, which may be invisible.
    pub fn new(shown: bool) -> Packing {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let template = "{msg} {wide_bar} {decimal_bytes} of {decimal_total_bytes}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message("packing");
        Packing {
            bar,
            due: shown.then(|| Instant::now() + PATIENCE),
        }
    }

    /// Sets the total number of bytes.
    pub fn expect(&self, bytes: u64) {
        self.bar.set_length(bytes);
    }

    /// Adds bytes to those that are done.
    pub fn advance(&mut self, bytes: u64) {
        self.bar.inc(bytes);
        if self.due.is_some_and(|due| Instant::now() >= due) {
            self.due = None;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

impl Drop for Packing {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_waits_and_counts() {
        let mut packing = Packing::new(true);
        packing.expect(100);
        packing.advance(60);
        assert!(packing.due.is_some() && packing.bar.is_hidden());
        packing.due = Some(Instant::now());
        packing.advance(30);
        assert!(packing.due.is_none());
        assert_eq!(
            (packing.bar.position(), packing.bar.length()),
            (90, Some(100))
        );
        assert!(Packing::new(false).due.is_none());
    }
}
