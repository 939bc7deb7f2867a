// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for a condition instead of a time.

use std::thread;
use std::time::{Duration, Instant};

/// The limit after which a wait counts as hung, far beyond what the busiest machine takes.
pub const HUNG: Duration = Duration::from_secs(600);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Waits until `is_so` returns true; panics with `what` after the limit.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < HUNG, "hung: {what}");
        thread::sleep(LOOK_AGAIN);
    }
}
