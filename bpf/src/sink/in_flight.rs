// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests that were issued and have not yet completed.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use mostrace_bundle::Zones;
use mostrace_bundle::blk_io_trace::Event;
use mostrace_bundle::blk_io_trace::action::{
    BLK_TC_DISCARD, BLK_TC_FLUSH, BLK_TC_FS, BLK_TC_PC, BLK_TC_WRITE, act, ta,
};

/// The fields of an event that identify its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Step {
    /// The action with its categories.
    pub action: u64,
    /// The first sector.
    pub sector: u64,
    /// The length.
    pub bytes: u32,
}

impl Step {
    /// Takes the fields of an event.
    pub fn of(event: &Event<'_>) -> Step {
        Step {
            action: event.action,
            sector: event.sector,
            bytes: event.bytes,
        }
    }
}

/// A request's first sector, length and direction.
type Key = (u64, u32, u32);

/// The number of slots. Each holds one request and is found by the request's sector; most requests find theirs empty and need not
/// be hashed.
const PLACES: usize = 256;

/// The requests, with the sector, length and direction of each.
#[derive(Clone, Debug)]
pub(super) struct InFlight {
    first: Box<[Option<Key>; PLACES]>,
    /// Requests whose slot was taken, and the number of each.
    others: HashMap<Key, u32, RandomState>,
    zones: Zones,
}

impl Default for InFlight {
    fn default() -> InFlight {
        InFlight {
            first: Box::new([None; PLACES]),
            others: HashMap::default(),
            zones: Zones::default(),
        }
    }
}

impl InFlight {
    /// Starts without requests, for a disk with these zones.
    pub fn of(zones: Zones) -> InFlight {
        InFlight {
            zones,
            ..InFlight::default()
        }
    }

    /// Returns the number of requests.
    pub fn count(&self) -> u64 {
        let others: u64 = self.others.values().map(|n| u64::from(*n)).sum();
        self.first.iter().flatten().count() as u64 + others
    }

    /// Takes the next event of the trace, in time order. Returns false for a completion, or a requeue, whose issue was not seen.
    pub fn step(&mut self, step: Step) -> bool {
        match act(step.action) {
            _ if !is_request(step) => true,
            ta::ISSUE => {
                self.begin(key(step));
                true
            }
            ta::REQUEUE | ta::COMPLETE => {
                self.end(key(step)) || self.end_append(key(step)) || self.end_front(key(step))
            }
            _ => true,
        }
    }

    fn place(&mut self, key: Key) -> &mut Option<Key> {
        // Slots are chosen by pages of 4 KiB, at which most requests begin.
        &mut self.first[(key.0 >> 3) as usize % PLACES]
    }

    fn begin(&mut self, key: Key) {
        let place = self.place(key);
        if place.is_none() {
            *place = Some(key);
        } else {
            *self.others.entry(key).or_insert(0) += 1;
        }
    }

    fn end(&mut self, key: Key) -> bool {
        let place = self.place(key);
        if *place == Some(key) {
            *place = None;
            return true;
        }
        let Some(n) = self.others.get_mut(&key) else {
            return false;
        };
        *n -= 1;
        if *n == 0 {
            self.others.remove(&key);
        }
        true
    }

    /// Completes an append to a zone.
    fn end_append(&mut self, (sector, bytes, direction): Key) -> bool {
        let issued = self.zones.append_sector(sector);
        issued.is_some_and(|issued| self.end((issued, bytes, direction)))
    }

    /// Completes the front of a request. A request may complete in parts; the rest stays.
    fn end_front(&mut self, (sector, bytes, direction): Key) -> bool {
        let is_front = |key: &&Key| key.0 == sector && key.2 == direction && key.1 > bytes;
        let mut all = self.first.iter().flatten().chain(self.others.keys());
        let Some(&whole) = all.find(is_front).filter(|_| bytes > 0) else {
            return false;
        };
        let behind = sector + u64::from(bytes) / 512;
        self.end(whole);
        self.begin((behind, whole.1 - bytes, direction));
        true
    }
}

/// Returns true if the event belongs to a request that is issued. A bio completes without an issue; so does, without bytes, a
/// requested flush, because only the device's own flush is issued.
fn is_request(step: Step) -> bool {
    let of_request = step.action & (BLK_TC_FS | BLK_TC_PC) != 0;
    of_request && (step.bytes > 0 || step.action & BLK_TC_FLUSH != 0)
}

/// Returns what a request keeps from its issue to its completion.
fn key(step: Step) -> Key {
    let direction = step.action & (BLK_TC_WRITE | BLK_TC_DISCARD);
    // The categories are bits 16 to 31.
    (step.sector, step.bytes, direction as u32)
}

#[cfg(test)]
mod tests {
    use mostrace_bundle::blk_io_trace::action::BLK_TC_SYNC;
    use mostrace_bundle::manifest::Device;
    use proptest::prelude::*;

    use super::*;

    fn write(act: u64, sector: u64, bytes: u32) -> Step {
        Step {
            action: act | BLK_TC_FS | BLK_TC_WRITE | BLK_TC_SYNC,
            sector,
            bytes,
        }
    }

    #[test]
    fn what_is_issued_stays_until_it_is_completed() {
        let mut requests = InFlight::default();
        for _ in 0..2 {
            assert!(requests.step(write(ta::ISSUE, 8, 4096)));
        }
        assert!(requests.step(write(ta::QUEUE, 8, 4096)));
        assert!(!requests.step(write(ta::COMPLETE, 16, 4096)));
        assert!(requests.step(write(ta::COMPLETE, 8, 4096)));
        assert_eq!(requests.count(), 1);
        assert!(requests.step(write(ta::REQUEUE, 8, 4096)));
        assert!(!requests.step(write(ta::COMPLETE, 8, 4096)));
        assert_eq!(requests.count(), 0);
    }

    #[test]
    fn an_append_is_completed_elsewhere_in_its_zone() {
        let disk = Device {
            zone_sectors: Some(32768),
            ..Device::default()
        };
        let mut requests = InFlight::of(Zones::of(&disk));
        requests.step(write(ta::ISSUE, 32768, 4096));
        requests.step(write(ta::ISSUE, 32768, 8192));
        assert!(requests.step(write(ta::COMPLETE, 32768 + 800, 8192)));
        assert!(!requests.step(write(ta::COMPLETE, 800, 4096)));
        assert!(requests.step(write(ta::COMPLETE, 32768 + 816, 4096)));
        assert_eq!(requests.count(), 0);
    }

    proptest! {
        /// Each missing completion is counted, however often a place is written again: with so few places and two lengths, most
        /// requests find an older one that never ended.
        #[test]
        fn no_request_explains_away_another(
            requests in prop::collection::vec((0u64..6, 0u64..3, 1u32..3, any::<bool>()), 0..200)
        ) {
            let mut in_flight = InFlight::default();
            let mut missing = 0;
            for (place, far, blocks, is_seen) in requests {
                let sector = place * 8 + far * 8 * PLACES as u64;
                let of = |act| write(act, sector, blocks * 4096);
                prop_assert!(in_flight.step(of(ta::ISSUE)));
                if is_seen {
                    prop_assert!(in_flight.step(of(ta::COMPLETE)));
                } else {
                    missing += 1;
                }
                prop_assert_eq!(in_flight.count(), missing);
            }
        }
    }

    #[test]
    fn a_request_may_be_completed_in_parts() {
        let mut requests = InFlight::default();
        requests.step(write(ta::ISSUE, 8, 8192));
        assert!(requests.step(write(ta::COMPLETE, 8, 4096)));
        assert_eq!(requests.count(), 1);
        assert!(!requests.step(write(ta::COMPLETE, 8, 4096)));
        assert!(requests.step(write(ta::COMPLETE, 16, 4096)));
        assert_eq!(requests.count(), 0);
    }

    #[test]
    fn requests_of_one_place_are_told_apart() {
        let mut requests = InFlight::default();
        let far = |n: u64| write(ta::ISSUE, 8 + n * 8 * PLACES as u64, 4096);
        let ended = |n| Step {
            action: write(ta::COMPLETE, 0, 0).action,
            ..far(n)
        };
        for n in 0..3 {
            requests.step(far(n));
        }
        for n in [1, 0, 2] {
            assert!(requests.step(ended(n)));
            assert!(!requests.step(ended(n)));
        }
        assert_eq!(requests.count(), 0);
    }

    #[test]
    fn of_flushes_only_the_devices_own_is_issued() {
        let mut requests = InFlight::default();
        let flush = |act| Step {
            action: act | BLK_TC_FS | BLK_TC_FLUSH,
            sector: 0,
            bytes: 0,
        };
        requests.step(flush(ta::ISSUE));
        assert!(requests.step(write(ta::COMPLETE, 0, 0)));
        assert_eq!(requests.count(), 1);
        assert!(requests.step(flush(ta::COMPLETE)));
        assert_eq!(requests.count(), 0);
    }
}
