// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measurements of a run: time, calls, CPU, context switches.

mod caches;
mod cpu;
mod kernel_counts;
mod latency;
mod phase;
mod progress;
mod switches;
mod threads;
mod written;

pub use caches::{Caches, drop_caches};
pub use cpu::Cpu;
pub(crate) use latency::milliseconds;
pub use latency::{Latency, Operation, write_iops, write_latencies};
pub use phase::Phase;
pub(crate) use phase::timed;
pub use progress::Progress;
pub use switches::Switches;
pub use threads::Measured;
pub(crate) use threads::{Stopwatch, in_threads};
pub use written::Written;
