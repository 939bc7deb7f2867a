// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress of a run.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of finished operations, to be polled from another thread. That thread's own output, for example a
/// progress bar, does not count as the workload's.
#[derive(Debug, Default)]
pub struct Progress(AtomicU64);

impl Progress {
    /// Counts one more operation.
    pub(crate) fn step(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of finished operations.
    pub fn done(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
