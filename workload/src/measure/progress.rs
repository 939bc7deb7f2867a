// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far a run is.

use std::sync::atomic::{AtomicU64, Ordering};

/// Operations that are done, for somebody who looks at it from another thread now and then: what that one writes to a
/// terminal is none of the workload's.
#[derive(Debug, Default)]
pub struct Progress(AtomicU64);

impl Progress {
    /// One more is done.
    pub(crate) fn step(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How many are done.
    pub fn done(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
