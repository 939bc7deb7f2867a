// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order of items by sector, put together only as far as it is asked for: most items are gone
//! by the next time.

use super::lane::Lane;
use std::collections::BTreeMap;

/// Lane, first sector, and the serial number that tells items of the same start apart.
pub(super) type Key = (Lane, u64, u64);

/// When at least so many are new, those gone are looked for.
const MANY: usize = 1 << 10;

#[derive(Default)]
pub(super) struct Order {
    /// Slots by key.
    sorted: BTreeMap<Key, usize>,
    /// Serial number of the newest item of which `sorted` knows.
    newest_sorted: u64,
    /// Slots and serial numbers of those that came after it, some of them gone.
    new: Vec<(usize, u64)>,
    prune_at: usize,
}

impl Order {
    /// Takes the newest item; `lives` says whether one is still there.
    #[inline]
    pub fn insert(&mut self, index: usize, serial: u64, lives: impl Fn(usize, u64) -> bool) {
        if self.new.len() >= self.prune_at {
            self.new.retain(|&(index, serial)| lives(index, serial));
            self.prune_at = self.new.len().saturating_mul(2).max(MANY);
        }
        self.new.push((index, serial));
    }

    #[inline]
    pub fn remove(&mut self, key: Key) {
        let (.., serial) = key;
        if serial <= self.newest_sorted {
            self.sorted.remove(&key);
        }
    }

    /// Sorts in what is new; `key` gives None for what is gone.
    pub fn settle(&mut self, key: impl Fn(usize, u64) -> Option<Key>) {
        if let Some(&(_, newest)) = self.new.last() {
            self.newest_sorted = newest;
        }
        for (index, serial) in self.new.drain(..) {
            if let Some(key) = key(index, serial) {
                self.sorted.insert(key, index);
            }
        }
    }

    /// The slots of a lane's items that start in `from..to`, by start and age.
    pub fn between(
        &self,
        lane: Lane,
        from: u64,
        to: u64,
    ) -> impl DoubleEndedIterator<Item = (Key, usize)> {
        self.sorted
            .range((lane, from, 0)..(lane, to.max(from), 0))
            .map(|(key, index)| (*key, *index))
    }
}
