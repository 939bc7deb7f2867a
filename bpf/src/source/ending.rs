// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of the recording of block events: no new requests are recorded any more, but the ends of those that were.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::machine::clock;
use crate::sink::{EventFiles, Sink, Step};

/// The time without events after which requests in flight are no longer waited for.
const SILENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(2);

/// Whether the recording is ending.
pub(super) struct Ending {
    since_ns: u64,
}

impl Ending {
    /// It is not yet ending.
    pub fn not_yet() -> Ending {
        Ending { since_ns: u64::MAX }
    }

    /// It ends now.
    pub fn begin(&mut self) {
        self.since_ns = clock::now().start_mono_ns;
    }

    /// Follows an event of a request. Returns false for the end of a request that was issued after the recording of new ones had
    /// ended.
    #[inline]
    pub fn takes(&self, time_ns: u64, step: Step, events: &mut EventFiles) -> bool {
        events.follow(time_ns, step) || time_ns < self.since_ns
    }
}

/// Lets `drain` take the completions of requests that were issued, as long as some keep coming. The probes of what begins a request
/// are detached by now, those of what ends it are not.
///
/// # Errors
/// Returns the errors of `drain`.
pub(super) fn wait_for_completions(
    sink: &mut Sink,
    mut drain: impl FnMut(&mut Sink) -> Result<()>,
) -> Result<()> {
    drain(sink)?;
    let mut since = Instant::now();
    let mut left = sink.events.in_flight();
    while left > Some(0) && since.elapsed() < SILENCE {
        sleep(TICK);
        drain(sink)?;
        let now = sink.events.in_flight();
        if now < left {
            since = Instant::now();
        }
        left = now;
    }
    Ok(())
}
