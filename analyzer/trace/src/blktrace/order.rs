// SPDX-License-Identifier: MIT OR Apache-2.0
//! An index of items by sector, sorted only when needed: most items are gone by then.

use super::lane::Lane;
use std::collections::BTreeMap;

/// Lane, first sector, and a serial number that distinguishes items with the same start.
pub(super) type Key = (Lane, u64, u64);

/// With this many new items, those that are gone are removed.
const MANY: usize = 1 << 10;

#[derive(Default)]
pub(super) struct Order {
    /// Indices into the slots, by key.
    sorted: BTreeMap<Key, usize>,
    /// Serial number of the newest item in `sorted`.
    newest_sorted: u64,
    /// Indices and serial numbers of newer items, some of which are gone.
    new: Vec<(usize, u64)>,
    prune_at: usize,
}

impl Order {
    /// Adds the newest item; `lives` returns whether an item still exists.
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

    /// Sorts the new items in; `key` returns None for an item that is gone.
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

    /// Returns the indices of a lane's items that start in `from..to`, by start and then by age.
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
