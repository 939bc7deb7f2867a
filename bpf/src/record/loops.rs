// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loop devices on the traced filesystem, some of which come and go while it is recorded.

use std::time::{Duration, Instant};

use mostrace_bundle::manifest::Loop;

use super::subject::Subject;
use crate::machine::loops;

/// The interval at which it is looked for new ones: one that is there for less may be missed.
const LOOK: Duration = Duration::from_secs(1);
/// The same for a recording in segments, which goes on for hours, and which looks at the end of each segment too.
const LOOK_IN_SEGMENTS: Duration = Duration::from_secs(10);

/// Returns those that are there now, be the filesystem on a mapped device.
pub(super) fn of(subject: &Subject) -> Vec<Loop> {
    let filesystem = subject.filesystem.as_ref();
    let mapped = filesystem.and_then(|filesystem| filesystem.dev.as_ref());
    let dev = mapped.unwrap_or(&subject.device.info.dev);
    filesystem.map_or_else(Vec::new, |_| loops::on(dev))
}

/// Adds those that are there now to those that were `seen`.
pub(super) fn add(subject: &Subject, seen: &mut Vec<Loop>) {
    for device in of(subject) {
        if !seen.contains(&device) {
            seen.push(device);
        }
    }
}

/// Looks for new ones now and then.
pub(super) struct Watch {
    looked: Instant,
    each: Duration,
}

impl Watch {
    /// Begins to watch, for a recording in segments or in one bundle.
    pub fn new(is_segmented: bool) -> Watch {
        Watch {
            looked: Instant::now(),
            each: if is_segmented { LOOK_IN_SEGMENTS } else { LOOK },
        }
    }

    /// The time until it is looked for new ones.
    pub fn due_in(&self) -> Duration {
        self.each.saturating_sub(self.looked.elapsed())
    }

    /// Adds the new ones to those that were `seen`, unless it was looked for them a moment ago; called often.
    pub fn look(&mut self, subject: &Subject, seen: &mut Vec<Loop>) {
        if self.looked.elapsed() >= self.each {
            self.look_now(subject, seen);
        }
    }

    /// Adds the new ones to those that were `seen`.
    pub fn look_now(&mut self, subject: &Subject, seen: &mut Vec<Loop>) {
        self.looked = Instant::now();
        add(subject, seen);
    }
}
