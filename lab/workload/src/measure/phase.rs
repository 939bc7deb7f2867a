// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measurement of one phase of a run, in the current thread.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::Written;
use crate::Result;

/// The time and the writes of one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// Wall time, ns.
    pub elapsed_ns: u64,
    /// The amounts that were written; None if the kernel does not count them.
    pub written: Option<Written>,
}

/// Runs one phase and measures it by the clock and the kernel's counters.
pub(crate) fn timed<T>(phase: impl FnOnce() -> Result<T>) -> Result<(Phase, T)> {
    let before = Written::of_this_thread();
    let start = Instant::now();
    let value = phase()?;
    let phase = Phase {
        elapsed_ns: since(start),
        written: Written::since(before),
    };
    Ok((phase, value))
}

/// Returns the nanoseconds since `start`.
pub(super) fn since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
