// SPDX-License-Identifier: MIT OR Apache-2.0
//! An index of what is in flight, by the sectors that it covers.
//!
//! Nearly every lookup is for an item that begins at the event's sector, so a hash of the sector finds it. Neighbouring sectors
//! matter only if something was lost or cut: for that, and only then, the items are put into an [`Order`].

use super::lane::Lane;
use super::order::Order;

/// An item older than this (the kernel's request timeout, ns) is not used if there is another explanation, and is dropped
/// when room is needed.
pub(super) const STALE_NS: u64 = 30_000_000_000;

/// The most items that are kept; far more than queues hold.
const CAPACITY: usize = 1 << 18;
/// Number of the newest items that stay when there are too many.
const NEWEST: u64 = 1 << 17;
/// With this many items, stale ones are dropped.
const SWEEP: usize = 1 << 14;
/// The most candidates that are examined for one event.
const TWINS: usize = 256;
/// The most predecessors that are examined for one that reaches over a sector.
const LOOK_BACK: usize = 8;
/// The initial number of buckets, a power of two.
const BUCKETS: usize = 1 << 9;

/// Marks the end of a chain.
const NONE: usize = usize::MAX;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Item<T> {
    pub bytes: u32,
    pub since_ns: u64,
    pub value: T,
}

/// Items by lane and first sector; they may overlap.
pub(super) struct Spans<T> {
    slots: Vec<Slot<T>>,
    free: Vec<usize>,
    /// Chains of slots by the hash of lane and sector, oldest first.
    buckets: Vec<Bucket>,
    len: usize,
    /// Serial number of the newest item.
    serial: u64,
    sweep_at: usize,
    order: Order,
}

struct Slot<T> {
    lane: Lane,
    sector: u64,
    /// Orders items by age; 0 in a free slot.
    serial: u64,
    /// Index of the next slot in the chain.
    next: usize,
    item: Item<T>,
}

#[derive(Clone, Copy)]
struct Bucket {
    first: usize,
    last: usize,
}

const EMPTY: Bucket = Bucket {
    first: NONE,
    last: NONE,
};

/// Returns the first sector after `bytes` bytes from `sector` on.
pub(super) fn end(sector: u64, bytes: u32) -> u64 {
    sector.saturating_add(u64::from(bytes / 512))
}

impl<T: Default> Spans<T> {
    pub fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            buckets: vec![EMPTY; BUCKETS],
            len: 0,
            serial: 0,
            sweep_at: SWEEP,
            order: Order::default(),
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn insert(&mut self, lane: Lane, sector: u64, item: Item<T>) {
        if self.len >= self.sweep_at {
            self.sweep(item.since_ns);
        }
        if self.len >= self.buckets.len() {
            let twice = self.buckets.len().saturating_mul(2);
            self.rebuild(twice);
        }
        self.serial = self.serial.saturating_add(1);
        let slot = Slot {
            lane,
            sector,
            serial: self.serial,
            next: NONE,
            item,
        };
        let index = self.free.pop().unwrap_or(self.slots.len());
        match self.slots.get_mut(index) {
            Some(free) => *free = slot,
            None => self.slots.push(slot),
        }
        self.len = self.len.saturating_add(1);
        self.append(index);
        let slots = &self.slots;
        let lives = |index: usize, serial| slots.get(index).is_some_and(|s| s.serial == serial);
        self.order.insert(index, self.serial, lives);
    }

    /// Appends a slot to its chain.
    fn append(&mut self, index: usize) {
        let Some(slot) = self.slots.get(index) else {
            return;
        };
        let at = self.bucket_of(slot.lane, slot.sector);
        let Some(bucket) = self.buckets.get_mut(at) else {
            return;
        };
        match self.slots.get_mut(bucket.last) {
            Some(last) => last.next = index,
            None => bucket.first = index,
        }
        bucket.last = index;
    }

    #[inline]
    fn bucket_of(&self, lane: Lane, sector: u64) -> usize {
        // Fibonacci hashing: the high bits of the product depend on all bits of the number.
        let hash = (sector ^ lane.0.rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mask = self.buckets.len().saturating_sub(1);
        usize::try_from(hash >> 32).map_or(0, |hash| hash & mask)
    }

    /// Drops stale items, and the oldest ones if too many remain.
    fn sweep(&mut self, now_ns: u64) {
        self.slots
            .retain(|s| s.serial > 0 && now_ns.saturating_sub(s.item.since_ns) < STALE_NS);
        if self.slots.len() >= CAPACITY {
            let oldest = self.serial.saturating_sub(NEWEST);
            self.slots.retain(|s| s.serial > oldest);
        }
        self.rebuild(self.buckets.len());
        self.sweep_at = self.len.saturating_mul(2).clamp(SWEEP, CAPACITY);
    }

    /// Rebuilds all chains.
    fn rebuild(&mut self, buckets: usize) {
        self.slots.retain(|slot| slot.serial > 0);
        self.slots.sort_unstable_by_key(|slot| slot.serial);
        self.free.clear();
        self.len = self.slots.len();
        self.buckets.clear();
        self.buckets.resize(buckets, EMPTY);
        self.order = Order::default();
        for index in 0..self.slots.len() {
            if let Some(slot) = self.slots.get_mut(index) {
                slot.next = NONE;
                self.order.insert(index, slot.serial, |_, _| true);
            }
            self.append(index);
        }
    }

    /// Returns the items that start at the sector, oldest first.
    #[inline]
    fn at(&self, lane: Lane, sector: u64) -> impl Iterator<Item = (usize, &Item<T>)> {
        let bucket = self.buckets.get(self.bucket_of(lane, sector));
        let mut next = bucket.map_or(NONE, |bucket| bucket.first);
        std::iter::from_fn(move || {
            let index = next;
            let slot = self.slots.get(index)?;
            next = slot.next;
            Some((index, slot))
        })
        .filter(move |(_, slot)| (slot.lane, slot.sector) == (lane, sector))
        .map(|(index, slot)| (index, &slot.item))
    }

    /// Returns how many items that start at the sector fit.
    pub fn count_at(&self, lane: Lane, sector: u64, fits: impl Fn(&Item<T>) -> bool) -> usize {
        let twins = self.at(lane, sector).take(TWINS);
        twins.filter(|(_, item)| fits(item)).count()
    }

    /// Returns the oldest item that starts at the sector and fits.
    pub fn first_at(
        &mut self,
        lane: Lane,
        sector: u64,
        fits: impl Fn(&Item<T>) -> bool,
    ) -> Option<&mut Item<T>> {
        let mut twins = self.at(lane, sector).take(TWINS);
        let (index, _) = twins.find(|(_, item)| fits(item))?;
        drop(twins);
        self.slots.get_mut(index).map(|slot| &mut slot.item)
    }

    /// Returns the newest item that starts at the sector and fits.
    pub fn last_at(
        &mut self,
        lane: Lane,
        sector: u64,
        fits: impl Fn(&Item<T>) -> bool,
    ) -> Option<&mut Item<T>> {
        let twins = self.at(lane, sector).take(TWINS);
        let (index, _) = twins.filter(|(_, item)| fits(item)).last()?;
        self.slots.get_mut(index).map(|slot| &mut slot.item)
    }

    /// Changes all items that start at the sector and fit.
    pub fn each_at(
        &mut self,
        lane: Lane,
        sector: u64,
        fits: impl Fn(&Item<T>) -> bool,
        change: impl Fn(&mut T),
    ) {
        let bucket = self.buckets.get(self.bucket_of(lane, sector));
        let mut next = bucket.map_or(NONE, |bucket| bucket.first);
        while let Some(slot) = self.slots.get_mut(next) {
            next = slot.next;
            if (slot.lane, slot.sector) == (lane, sector) && fits(&slot.item) {
                change(&mut slot.item.value);
            }
        }
    }

    /// Takes the item that starts at the sector and fits. Stale items are dropped first, except the last one. If several fit, the
    /// oldest is taken. `blur` keeps only what all of them have in common.
    #[inline]
    pub fn take(
        &mut self,
        lane: Lane,
        sector: u64,
        now_ns: u64,
        fits: impl Fn(&Item<T>) -> bool,
        blur: impl Fn(&mut T, &mut T),
    ) -> Option<Item<T>> {
        let mut fitting = self.at(lane, sector).filter(|(_, item)| fits(item));
        let (first, _) = fitting.next()?;
        if fitting.next().is_some() {
            drop(fitting);
            return self.take_of_several(lane, sector, now_ns, fits, blur);
        }
        drop(fitting);
        self.remove(first)
    }

    #[cold]
    fn take_of_several(
        &mut self,
        lane: Lane,
        sector: u64,
        now_ns: u64,
        fits: impl Fn(&Item<T>) -> bool,
        blur: impl Fn(&mut T, &mut T),
    ) -> Option<Item<T>> {
        let mut twins: Vec<(usize, u64)> = self
            .at(lane, sector)
            .filter(|(_, item)| fits(item))
            .map(|(index, item)| (index, item.since_ns))
            .take(TWINS)
            .collect();
        let (newest, _) = *twins.last()?;
        twins.retain(|&(index, since_ns)| {
            let stale = index != newest && now_ns.saturating_sub(since_ns) >= STALE_NS;
            if stale {
                self.remove(index);
            }
            !stale
        });
        let (&(first, _), others) = twins.split_first()?;
        let mut taken = self.remove(first)?;
        // The second pass blurs the first items by what the last one differs in.
        for _ in 0..2 {
            for &(index, _) in others {
                if let Some(other) = self.slots.get_mut(index) {
                    blur(&mut taken.value, &mut other.item.value);
                }
            }
        }
        Some(taken)
    }

    /// Takes the newest item that starts at the sector and fits; the others stay as they are.
    pub fn take_that(
        &mut self,
        lane: Lane,
        sector: u64,
        fits: impl Fn(&Item<T>) -> bool,
    ) -> Option<Item<T>> {
        let fitting = self.at(lane, sector).filter(|(_, item)| fits(item));
        let (newest, _) = fitting.last()?;
        self.remove(newest)
    }

    /// Makes all items alike by `blur` that cover some of `from..to`, and all that overlap one of them.
    pub fn blur_around(&mut self, lane: Lane, from: u64, to: u64, blur: impl Fn(&mut T, &mut T)) {
        let (mut those, mut range) = (Vec::new(), from..to);
        loop {
            let found = self.covering(lane, range.start, range.end);
            if found.len() == those.len() {
                break;
            }
            those = found;
            for slot in those.iter().filter_map(|&index| self.slots.get(index)) {
                range.start = range.start.min(slot.sector);
                range.end = range.end.max(end(slot.sector, slot.item.bytes));
            }
        }
        let Some((&first, others)) = those.split_first() else {
            return;
        };
        // The second pass blurs the first items by what the last one differs in.
        for _ in 0..2 {
            for &other in others {
                if let Ok([one, other]) = self.slots.get_disjoint_mut([first, other]) {
                    blur(&mut one.item.value, &mut other.item.value);
                }
            }
        }
    }

    /// Returns true if an item that fits covers some of `from..to`.
    pub fn covers(
        &mut self,
        lane: Lane,
        from: u64,
        to: u64,
        fits: impl Fn(&Item<T>) -> bool,
    ) -> bool {
        let those = self.covering(lane, from, to).into_iter();
        let mut items = those.filter_map(|index| self.slots.get(index));
        items.any(|slot| fits(&slot.item))
    }

    /// Returns the items that cover some of `from..to`.
    fn covering(&mut self, lane: Lane, from: u64, to: u64) -> Vec<usize> {
        self.settle();
        let before = self.order.between(lane, 0, from).rev().take(TWINS);
        let within = self.order.between(lane, from, to).take(TWINS);
        let covers = |index: &usize| {
            let slot = self.slots.get(*index);
            slot.is_some_and(|s| s.item.bytes > 0 && end(s.sector, s.item.bytes) > from)
        };
        let those = before.chain(within).map(|(_, index)| index);
        those.filter(covers).collect()
    }

    fn remove(&mut self, index: usize) -> Option<Item<T>> {
        self.unchain(index)?;
        let slot = self.slots.get_mut(index)?;
        self.order.remove((slot.lane, slot.sector, slot.serial));
        slot.serial = 0;
        self.free.push(index);
        self.len = self.len.saturating_sub(1);
        Some(std::mem::take(&mut slot.item))
    }

    fn unchain(&mut self, index: usize) -> Option<()> {
        let slot = self.slots.get(index)?;
        let (next, at) = (slot.next, self.bucket_of(slot.lane, slot.sector));
        let bucket = self.buckets.get_mut(at)?;
        if bucket.first == index {
            bucket.first = next;
            if next == NONE {
                bucket.last = NONE;
            }
            return Some(());
        }
        let mut before = bucket.first;
        loop {
            let slot = self.slots.get_mut(before)?;
            if slot.next == index {
                slot.next = next;
                if next == NONE {
                    bucket.last = before;
                }
                return Some(());
            }
            before = slot.next;
        }
    }

    /// Sorts new items into the order, so that it can be searched.
    fn settle(&mut self) {
        let slots = &self.slots;
        self.order.settle(|index, serial| {
            let slot = slots.get(index).filter(|slot| slot.serial == serial)?;
            Some((slot.lane, slot.sector, serial))
        });
    }

    /// Returns true if an item covers some of the sectors.
    pub fn overlaps(&mut self, lane: Lane, sector: u64, bytes: u32) -> bool {
        self.at(lane, sector).next().is_some()
            || self.next_start(lane, sector, end(sector, bytes)).is_some()
            || self.over(lane, sector).next().is_some()
    }

    /// Returns the first start of an item of more than 0 bytes after `sector` and before `end`.
    pub fn next_start(&mut self, lane: Lane, sector: u64, end: u64) -> Option<u64> {
        let from = sector.saturating_add(1);
        if from >= end {
            return None;
        }
        self.settle();
        let has_bytes = |index: usize| self.slots.get(index).is_some_and(|s| s.item.bytes > 0);
        let mut starts = self.order.between(lane, from, end);
        starts
            .find(|&(_, index)| has_bytes(index))
            .map(|((_, start, _), _)| start)
    }

    /// Returns the items that start before the sector and reach over it.
    fn over(&mut self, lane: Lane, sector: u64) -> impl Iterator<Item = (usize, &Slot<T>)> {
        self.settle();
        self.order
            .between(lane, 0, sector)
            .rev()
            .take(LOOK_BACK)
            .filter_map(|(_, index)| Some((index, self.slots.get(index)?)))
            .filter(move |(_, slot)| end(slot.sector, slot.item.bytes) > sector)
    }

    /// Takes the item that starts before the sector and reaches over it, and returns it with its first sector; None unless
    /// it is the only one and not stale.
    pub fn take_over(&mut self, lane: Lane, sector: u64, now_ns: u64) -> Option<(u64, Item<T>)> {
        let mut over = self.over(lane, sector);
        let (index, slot) = over.next()?;
        let start = slot.sector;
        if over.next().is_some() || now_ns.saturating_sub(slot.item.since_ns) >= STALE_NS {
            return None;
        }
        drop(over);
        Some((start, self.remove(index)?))
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All items in a list sorted by lane, sector and age.
    #[derive(Default)]
    struct Naive {
        items: Vec<(Lane, u64, Item<u32>)>,
    }

    impl Naive {
        fn insert(&mut self, lane: Lane, sector: u64, item: Item<u32>) {
            self.items.push((lane, sector, item));
            // The sort is stable: twins stay in the order of age.
            self.items.sort_by_key(|&(lane, sector, _)| (lane, sector));
        }

        fn places(&self, fits: impl Fn(&(Lane, u64, Item<u32>)) -> bool) -> Vec<usize> {
            let all = self.items.iter().enumerate();
            all.filter(|(_, i)| fits(i)).map(|(at, _)| at).collect()
        }

        fn take(&mut self, lane: Lane, sector: u64, now: u64, bytes: u32) -> Option<u32> {
            let fits = |i: &(Lane, u64, Item<u32>)| (i.0, i.1, i.2.bytes) == (lane, sector, bytes);
            let newest = *self.places(fits).last()?;
            let stale = |item: &Item<u32>| now - item.since_ns >= STALE_NS;
            let mut at = 0;
            self.items.retain(|i| {
                at += 1;
                at == newest + 1 || !fits(i) || !stale(&i.2)
            });
            let left = self.places(fits);
            let values: Vec<u32> = left.iter().map(|&at| self.items[at].2.value).collect();
            if values.iter().any(|value| *value != values[0]) {
                left.iter().for_each(|&at| self.items[at].2.value = 0);
            }
            Some(self.items.remove(left[0]).2.value)
        }

        fn over(&self, lane: Lane, sector: u64) -> Vec<usize> {
            let before = self.places(|i| i.0 == lane && i.1 < sector);
            let near = before.into_iter().rev().take(LOOK_BACK);
            near.filter(|&at| end(self.items[at].1, self.items[at].2.bytes) > sector)
                .collect()
        }

        fn next_start(&self, lane: Lane, sector: u64, end: u64) -> Option<u64> {
            let within = self.places(|i| i.0 == lane && i.1 > sector && i.1 < end && i.2.bytes > 0);
            within.first().map(|&at| self.items[at].1)
        }
    }

    #[test]
    fn what_lives_is_found_among_many() {
        let mut spans = Spans::new();
        let lane = Lane(0);
        for nth in 0..3000 {
            let item = Item {
                bytes: 4096,
                since_ns: nth,
                value: 0_u32,
            };
            spans.insert(lane, 8 * nth, item);
        }
        let next: Vec<_> = (0..2999)
            .filter_map(|nth| spans.next_start(lane, 8 * nth, u64::MAX))
            .collect();
        let expected: Vec<u64> = (1..3000).map(|nth| 8 * nth).collect();
        assert_eq!(next, expected);
    }

    proptest! {
        /// Whatever is inserted and asked in whatever order, the answers are those of a plain list.
        #[test]
        fn spans_are_a_list_that_is_fast(
            steps in prop::collection::vec(
                (0_u8..9, 0_u64..2, 0_u64..24, 0_u32..8, 1_u32..4, 0_u64..12), 0..300),
        ) {
            let (mut spans, mut naive) = (Spans::new(), Naive::default());
            let mut now = 0;
            for (what, lane, sector, blocks, value, wait) in steps {
                // The step is sometimes so long that everything is stale.
                now += if wait == 11 { STALE_NS } else { wait };
                let (lane, bytes) = (Lane(lane), blocks * 512);
                match what {
                    0..4 => {
                        let item = Item { bytes, since_ns: now, value };
                        spans.insert(lane, sector, item);
                        naive.insert(lane, sector, item);
                    }
                    4..6 => {
                        let blur = |a: &mut u32, b: &mut u32| if a != b { (*a, *b) = (0, 0) };
                        let same = |item: &Item<u32>| item.bytes == bytes;
                        let taken = spans.take(lane, sector, now, same, blur);
                        let expected = naive.take(lane, sector, now, bytes);
                        prop_assert_eq!(taken.map(|item| item.value), expected);
                    }
                    6 => {
                        let expected = naive.next_start(lane, sector, sector + 9);
                        prop_assert_eq!(spans.next_start(lane, sector, sector + 9), expected);
                    }
                    7 => {
                        let expected = !naive.places(|i| (i.0, i.1) == (lane, sector)).is_empty()
                            || naive.next_start(lane, sector, end(sector, bytes)).is_some()
                            || !naive.over(lane, sector).is_empty();
                        prop_assert_eq!(spans.overlaps(lane, sector, bytes), expected);
                    }
                    _ => {
                        let expected = match naive.over(lane, sector)[..] {
                            [at] if now - naive.items[at].2.since_ns < STALE_NS => {
                                let (_, start, item) = naive.items.remove(at);
                                Some((start, item.value))
                            }
                            _ => None,
                        };
                        let taken = spans.take_over(lane, sector, now);
                        prop_assert_eq!(taken.map(|(start, item)| (start, item.value)), expected);
                    }
                }
                prop_assert_eq!(spans.len(), naive.items.len());
                if let Some(oldest) = naive.places(|i| (i.0, i.1) == (lane, sector)).first() {
                    let oldest = naive.items[*oldest].2.value;
                    prop_assert_eq!(spans.first_at(lane, sector, |_| true).unwrap().value, oldest);
                }
            }
        }
    }
}
