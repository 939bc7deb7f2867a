// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of the recording of block events: no new requests are recorded any more, but the ends of those that were.

use std::collections::HashMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use mostrace_bundle::blk_io_trace::action::{
    BLK_TC_FLUSH, BLK_TC_FS, BLK_TC_FUA, BLK_TC_PC, BLK_TC_WRITE, act, ta,
};

use crate::error::Result;
use crate::machine::clock;
use crate::sink::{EventFiles, Sink, Step};

/// The time without events after which requests in flight are no longer waited for.
const SILENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(2);

/// Whether the recording is ending.
pub(super) struct Ending {
    since_ns: u64,
    sequences: Sequences,
}

impl Ending {
    /// It is not yet ending.
    pub fn not_yet() -> Ending {
        Ending {
            since_ns: u64::MAX,
            sequences: Sequences::default(),
        }
    }

    /// It ends now.
    pub fn begin(&mut self) {
        self.since_ns = clock::now().start_mono_ns;
    }

    /// Follows an event of a request. Returns false for the end of what began after the recording of new requests had ended.
    #[inline]
    pub fn takes(&mut self, time_ns: u64, step: Step, events: &mut EventFiles) -> bool {
        let began = events.follow(time_ns, step) && self.sequences.follow(step);
        began || time_ns < self.since_ns
    }
}

/// Flushes, and writes that ask for one, whose flush sequences have not ended (block/blk-flush.c). A sequence is queued as one bio. It
/// is not issued itself, and ends with a completion of 0 bytes, behind that of its data.
#[derive(Default)]
struct Sequences {
    /// The number of those with a preflush, by sector.
    flushes: HashMap<u64, u32>,
    /// The same of writes with FUA alone, which are sequences unless the disk itself has FUA.
    fua: HashMap<u64, u32>,
}

impl Sequences {
    /// Returns false for the end of a sequence whose queueing was not seen.
    fn follow(&mut self, step: Step) -> bool {
        let has = |bit| step.action & bit != 0;
        match (act(step.action), step.bytes) {
            (ta::QUEUE, _) if has(BLK_TC_FLUSH) => add(&mut self.flushes, step.sector),
            (ta::QUEUE, _) if has(BLK_TC_FUA) => add(&mut self.fua, step.sector),
            (ta::COMPLETE, 0) if has(BLK_TC_WRITE) => {
                return remove(&mut self.flushes, step.sector)
                    || remove(&mut self.fua, step.sector);
            }
            // A disk without requests has no sequences: the bio ends once.
            (ta::COMPLETE, _) if !has(BLK_TC_FS | BLK_TC_PC) => {
                let _ =
                    remove(&mut self.flushes, step.sector) || remove(&mut self.fua, step.sector);
            }
            // The disk has FUA.
            (ta::COMPLETE, _) if has(BLK_TC_FUA) => {
                remove(&mut self.fua, step.sector);
            }
            _ => {}
        }
        true
    }
}

fn add(counts: &mut HashMap<u64, u32>, sector: u64) {
    *counts.entry(sector).or_default() += 1;
}

/// Returns false if there was none.
fn remove(counts: &mut HashMap<u64, u32>, sector: u64) -> bool {
    match counts.get_mut(&sector) {
        Some(1) => counts.remove(&sector).is_some(),
        Some(count) => {
            *count -= 1;
            true
        }
        None => false,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_ends_once() {
        let mut sequences = Sequences::default();
        let mut step = |action, sector, bytes| {
            sequences.follow(Step {
                action: action | BLK_TC_FS | BLK_TC_WRITE,
                sector,
                bytes,
            })
        };
        assert!(!step(ta::COMPLETE, 0, 0));
        // Two flushes that wait at once, and a write with a preflush and FUA.
        for (sector, bytes) in [(0, 0), (0, 0), (8, 4096)] {
            assert!(step(ta::QUEUE | BLK_TC_FLUSH, sector, bytes));
        }
        assert!(step(ta::COMPLETE | BLK_TC_FUA, 8, 4096));
        for sector in [0, 8, 0] {
            assert!(step(ta::COMPLETE, sector, 0));
        }
        for sector in [0, 8] {
            assert!(!step(ta::COMPLETE, sector, 0));
        }
        // A write with FUA alone, by a disk that has FUA and by one that has not.
        assert!(step(ta::QUEUE | BLK_TC_FUA, 8, 4096));
        assert!(step(ta::COMPLETE | BLK_TC_FUA, 8, 4096));
        assert!(!step(ta::COMPLETE, 8, 0));
        assert!(step(ta::QUEUE | BLK_TC_FUA, 8, 4096));
        assert!(step(ta::COMPLETE, 8, 4096));
        assert!(step(ta::COMPLETE, 8, 0));
        assert!(sequences.flushes.is_empty() && sequences.fua.is_empty());
        // Without requests.
        for asked in [BLK_TC_FLUSH, BLK_TC_FUA] {
            for action in [ta::QUEUE | asked, ta::COMPLETE] {
                assert!(sequences.follow(Step {
                    action: action | BLK_TC_WRITE,
                    sector: 8,
                    bytes: 4096,
                }));
            }
        }
        assert!(sequences.flushes.is_empty() && sequences.fua.is_empty());
    }
}
