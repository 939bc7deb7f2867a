// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the clocks at one moment.

use mostrace_bundle::manifest::Clock;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Reads the monotonic clock and then the calendar's.
pub fn now() -> Clock {
    Clock {
        start_mono_ns: ns(clock_gettime(ClockId::Monotonic)),
        start_unix_ns: ns(clock_gettime(ClockId::Realtime)),
        stop_mono_ns: 0,
    }
}

fn ns(t: Timespec) -> u64 {
    let seconds = u64::try_from(t.tv_sec).unwrap_or(0);
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::try_from(t.tv_nsec).unwrap_or(0))
}
