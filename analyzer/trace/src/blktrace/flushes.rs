// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the device flush that a flush sequence waited for.
//!
//! The block layer lets all waiting flush sequences share one cache flush of the device (block/blk-flush.c). When that
//! completes, `flush_end_io` ends the sequences without data at once: their C events follow that of the device flush on the
//! same CPU, with nothing between them. Sequences with data issue their data after it.

use std::collections::VecDeque;

use mostrace_bundle::blk_io_trace::Event;
use mostrace_bundle::blk_io_trace::action::{BLK_TC_FLUSH, BLK_TC_WRITE, ta};

/// Number of device flushes that are kept because data may have waited for them; few are in flight at a time.
const RECENT: usize = 64;

/// The most CPUs that may be ending sequences at once: a damaged trace may name any number of CPUs.
const ENDING: usize = 256;

/// A cache flush that a device executed.
struct Executed {
    number: u32,
    device: u32,
    d_ns: u64,
    time_ns: u64,
}

/// A device flush whose sequences are being ended on a CPU.
struct Ending {
    cpu: u32,
    device: u32,
    number: u32,
}

/// The device flushes of a trace that a sequence may still refer to.
#[derive(Default)]
pub(super) struct Flushes {
    /// Index of the next completion.
    next: u32,
    /// The flushes that are ending, at most one for each CPU, oldest first.
    ending: VecDeque<Ending>,
    recent: VecDeque<Executed>,
}

impl Flushes {
    /// Takes every event, before [`complete`](Self::complete).
    #[inline]
    pub fn see(&mut self, event: &Event<'_>) {
        if !self.ending.is_empty() && !ends_sequence(event) {
            self.ending.retain(|ending| ending.cpu != event.cpu);
        }
    }

    /// Takes a C and the time of its request's D; returns the device flush right before it on its CPU.
    pub fn complete(&mut self, event: &Event<'_>, d_ns: Option<u64>) -> Option<u32> {
        let number = self.next;
        self.next = number.saturating_add(1);
        if is_device_flush(event) {
            if self.ending.len() >= ENDING {
                self.ending.pop_front();
            }
            self.ending.push_back(Ending {
                cpu: event.cpu,
                device: event.device,
                number,
            });
            if self.recent.len() >= RECENT {
                self.recent.pop_front();
            }
            self.recent.extend(d_ns.map(|d_ns| Executed {
                number,
                device: event.device,
                d_ns,
                time_ns: event.time_ns,
            }));
            return None;
        }
        let of = |ending: &&Ending| (ending.cpu, ending.device) == (event.cpu, event.device);
        let ending = self.ending.iter().find(of)?;
        ends_sequence(event).then_some(ending.number)
    }

    /// Returns the only device flush that was issued after `queued_ns` and completed before `issued_ns`, when the data
    /// behind it was issued.
    pub fn between(&self, device: u32, queued_ns: Option<u64>, issued_ns: u64) -> Option<u32> {
        let queued_ns = queued_ns?;
        let mut within = self.recent.iter().filter(|flush| {
            flush.device == device && flush.d_ns >= queued_ns && flush.time_ns <= issued_ns
        });
        let first = within.next()?;
        within.next().is_none().then_some(first.number)
    }
}

/// Returns true for a C of 0 bytes of the flush machinery's own request, which neither reads nor writes.
fn is_device_flush(event: &Event<'_>) -> bool {
    let direction = event.action & (BLK_TC_FLUSH | BLK_TC_WRITE);
    event.act() == ta::COMPLETE && event.bytes == 0 && direction == BLK_TC_FLUSH
}

/// Returns true for a C of 0 bytes of a request that asked for a flush.
fn ends_sequence(event: &Event<'_>) -> bool {
    event.act() == ta::COMPLETE && event.bytes == 0 && event.action & BLK_TC_WRITE != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded() {
        let mut flushes = Flushes::default();
        for cpu in 0..10_000 {
            let event = Event {
                action: BLK_TC_FLUSH | ta::COMPLETE,
                cpu,
                ..Event::default()
            };
            flushes.see(&event);
            flushes.complete(&event, Some(0));
            assert!(flushes.ending.len() <= ENDING && flushes.recent.len() <= RECENT);
        }
        assert_eq!(flushes.ending.len(), ENDING);
    }
}
