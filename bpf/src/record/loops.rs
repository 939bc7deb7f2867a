// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loop devices on the traced filesystem; some come and go while it is recorded.

use std::time::{Duration, Instant};

use mostrace_bundle::manifest::Loop;

use super::subject::Subject;
use crate::machine::loops;

/// The interval at which new loop devices are looked for; one that exists for less time may be missed.
const LOOK: Duration = Duration::from_secs(1);
/// The same interval for a recording in segments, which runs for hours and also looks at the end of each segment.
const LOOK_IN_SEGMENTS: Duration = Duration::from_secs(10);

/// Returns the loop devices that exist now, also if the filesystem is on a mapped device.
pub(super) fn of(subject: &Subject) -> Vec<Loop> {
    let filesystem = subject.filesystem.as_ref();
    let mapped = filesystem.and_then(|filesystem| filesystem.dev.as_ref());
    let dev = mapped.unwrap_or(&subject.device.info.dev);
    filesystem.map_or_else(Vec::new, |_| loops::on(dev))
}

/// Adds the loop devices that exist now to those that were `seen`.
pub(super) fn add(subject: &Subject, seen: &mut Vec<Loop>) {
    for device in of(subject) {
        if !seen.contains(&device) {
            seen.push(device);
        }
    }
}

/// Looks for new loop devices from time to time.
pub(super) struct Watch {
    looked: Instant,
    each: Duration,
}

impl Watch {
    /// Starts watching, for a recording in segments or in one bundle.
    pub fn new(is_segmented: bool) -> Watch {
        Watch {
            looked: Instant::now(),
            each: if is_segmented { LOOK_IN_SEGMENTS } else { LOOK },
        }
    }

    /// Returns the time until the next look.
    pub fn due_in(&self) -> Duration {
        self.each.saturating_sub(self.looked.elapsed())
    }

    /// Adds the new loop devices to those that were `seen`, if the last look was long enough ago; this is called often.
    pub fn look(&mut self, subject: &Subject, seen: &mut Vec<Loop>) {
        if self.looked.elapsed() >= self.each {
            self.look_now(subject, seen);
        }
    }

    /// Adds the new loop devices to those that were `seen`.
    pub fn look_now(&mut self, subject: &Subject, seen: &mut Vec<Loop>) {
        self.looked = Instant::now();
        add(subject, seen);
    }
}
