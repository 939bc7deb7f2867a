// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is under way, by the sectors it covers.

use std::collections::BTreeMap;

/// After this long something under way is not believed in if there is another explanation, and is
/// dropped when room is needed: the kernel's request timeout.
pub(super) const STALE_NS: u64 = 30_000_000_000;

/// The most that is kept; far beyond what queues hold.
const CAPACITY: usize = 1 << 18;
/// From here on stale items are looked for.
const SWEEP: usize = 1 << 14;
/// The most candidates looked at for one event.
const TWINS: usize = 256;
/// The most predecessors looked at for one that reaches over a sector.
const LOOK_BACK: usize = 8;

/// A device and a direction: items of different lanes never meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lane(pub u64);

/// Lane, first sector, and a serial number that tells items of the same start apart, oldest first.
type Key = (Lane, u64, u64);

#[derive(Clone, Debug)]
pub(super) struct Item<T> {
    pub bytes: u32,
    pub since_ns: u64,
    pub value: T,
}

/// Items by lane and first sector; they may overlap.
pub(super) struct Spans<T> {
    items: BTreeMap<Key, Item<T>>,
    serial: u64,
    sweep_at: usize,
}

/// The first sector after `bytes` from `sector` on.
pub(super) fn end(sector: u64, bytes: u32) -> u64 {
    sector.saturating_add(u64::from(bytes / 512))
}

impl<T> Spans<T> {
    pub fn new() -> Self {
        Self {
            items: BTreeMap::new(),
            serial: 0,
            sweep_at: SWEEP,
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn insert(&mut self, lane: Lane, sector: u64, item: Item<T>) {
        if self.items.len() >= self.sweep_at {
            self.sweep(item.since_ns);
        }
        self.serial += 1;
        self.items.insert((lane, sector, self.serial), item);
    }

    /// Drops what is stale, and the oldest half if that leaves too much.
    fn sweep(&mut self, now_ns: u64) {
        self.items
            .retain(|_, item| now_ns.saturating_sub(item.since_ns) < STALE_NS);
        if self.items.len() >= CAPACITY {
            let oldest = self.serial.saturating_sub(CAPACITY as u64 / 2);
            self.items.retain(|&(_, _, serial), _| serial > oldest);
        }
        self.sweep_at = (2 * self.items.len()).clamp(SWEEP, CAPACITY);
    }

    /// Every item that starts at the sector, oldest first.
    pub fn at_mut(&mut self, lane: Lane, sector: u64) -> impl Iterator<Item = &mut Item<T>> {
        self.items
            .range_mut((lane, sector, 0)..=(lane, sector, u64::MAX))
            .map(|(_, item)| item)
            .take(TWINS)
    }

    /// Whether an item reaches over some of the sectors.
    pub fn overlaps(&self, lane: Lane, sector: u64, bytes: u32) -> bool {
        self.over(lane, sector).next().is_some()
            || self.next_start(lane, sector, end(sector, bytes)).is_some()
            || self.starts_at(lane, sector)
    }

    fn starts_at(&self, lane: Lane, sector: u64) -> bool {
        let mut at = self
            .items
            .range((lane, sector, 0)..=(lane, sector, u64::MAX));
        at.next().is_some()
    }

    /// The first start of an item of more than 0 bytes behind `sector` and ahead of `end`.
    pub fn next_start(&self, lane: Lane, sector: u64, end: u64) -> Option<u64> {
        let from = sector.saturating_add(1);
        if from >= end {
            return None;
        }
        self.items
            .range((lane, from, 0)..(lane, end, 0))
            .find(|(_, item)| item.bytes > 0)
            .map(|(&(_, start, _), _)| start)
    }

    /// Takes the one item that starts at the sector and fits. If several do, the oldest is taken,
    /// and `blur` makes all of them alike, so that none claims to be the one; stale ones are
    /// dropped first, but the last.
    pub fn take(
        &mut self,
        lane: Lane,
        sector: u64,
        now_ns: u64,
        fits: impl Fn(&Item<T>) -> bool,
        blur: impl Fn(&mut T, &mut T),
    ) -> Option<Item<T>> {
        let mut fitting = self
            .items
            .range((lane, sector, 0)..=(lane, sector, u64::MAX))
            .filter(|(_, item)| fits(item))
            .map(|(key, _)| *key);
        let first = fitting.next()?;
        if fitting.next().is_some() {
            return self.take_of_several(first, now_ns, fits, blur);
        }
        self.items.remove(&first)
    }

    #[cold]
    fn take_of_several(
        &mut self,
        (lane, sector, _): Key,
        now_ns: u64,
        fits: impl Fn(&Item<T>) -> bool,
        blur: impl Fn(&mut T, &mut T),
    ) -> Option<Item<T>> {
        let mut keys: Vec<(Key, u64)> = self
            .items
            .range((lane, sector, 0)..=(lane, sector, u64::MAX))
            .filter(|(_, item)| fits(item))
            .map(|(key, item)| (*key, item.since_ns))
            .take(TWINS)
            .collect();
        let (newest, _) = *keys.last()?;
        keys.retain(|&(key, since_ns)| {
            let stale = key != newest && now_ns.saturating_sub(since_ns) >= STALE_NS;
            if stale {
                self.items.remove(&key);
            }
            !stale
        });
        let ((first, _), others) = keys.split_first()?;
        let mut taken = self.items.remove(first)?;
        // Twice, so that what the last one differs in is blurred in the first ones too.
        for _ in 0..2 {
            for (key, _) in others {
                if let Some(other) = self.items.get_mut(key) {
                    blur(&mut taken.value, &mut other.value);
                }
            }
        }
        Some(taken)
    }

    /// Items that start before the sector and reach over it.
    fn over(&self, lane: Lane, sector: u64) -> impl Iterator<Item = (Key, &Item<T>)> {
        self.items
            .range((lane, 0, 0)..(lane, sector, 0))
            .rev()
            .take(LOOK_BACK)
            .filter(move |((_, start, _), item)| end(*start, item.bytes) > sector)
            .map(|(key, item)| (*key, item))
    }

    /// Takes the item that starts before the sector and reaches over it, if it is the only one and
    /// not stale; with its first sector.
    pub fn take_over(&mut self, lane: Lane, sector: u64, now_ns: u64) -> Option<(u64, Item<T>)> {
        let mut over = self.over(lane, sector);
        let (key, item) = over.next()?;
        if over.next().is_some() || now_ns.saturating_sub(item.since_ns) >= STALE_NS {
            return None;
        }
        drop(over);
        Some((key.1, self.items.remove(&key)?))
    }
}
