// SPDX-License-Identifier: MIT OR Apache-2.0
//! An index of runs of sectors that finds those that overlap a range.
//!
//! The disk is divided into cells on several levels, one level for each range of run lengths. A level's cells are as long as
//! its longest possible run: a run is kept in the cell where it begins, and reaches at most into the next one. So a lookup
//! need not reach back by the length of the longest discard, and runs elsewhere on the disk cost nothing.

use std::hash::BuildHasher;
use std::ops::{Range, RangeInclusive};

use crate::tally::Tally;

/// Runs shorter than 64 sectors, shorter than 1024, and so on; a 32-bit count of bytes is at most 23 bits of sectors.
const LEVELS: usize = 6;

/// log2 of the length of each level's cells, in sectors.
const CELL_BITS: [u32; LEVELS] = [6, 10, 14, 18, 22, 26];

/// The index of a run.
pub(super) type Place = u32;

/// Marks the end of a chain.
const NONE: Place = Place::MAX;

/// A run of sectors and the next one in the same chain; small, because lookups go through many.
#[derive(Clone, Copy)]
struct Run {
    sector: u64,
    /// 0 if the place is free.
    sectors: u32,
    next: Place,
}

impl Run {
    #[inline]
    fn end(&self) -> u64 {
        self.sector.saturating_add(self.sectors.into())
    }

    #[inline]
    fn level(&self) -> usize {
        (self.sectors.max(1).ilog2() as usize).saturating_sub(2) / 4
    }

    /// Returns the number of the run's cell.
    #[inline]
    fn number(&self) -> u64 {
        self.sector >> CELL_BITS[self.level()]
    }
}

/// An index of runs of sectors that may overlap; each run has an item.
pub(super) struct Cells<T> {
    runs: Vec<Run>,
    items: Vec<T>,
    free: Vec<Place>,
    /// The first run of each chain. All runs of a cell are in one chain, perhaps with runs of other cells. There are several
    /// times as many chains as runs, so most are empty.
    chains: Vec<Place>,
    /// A random odd number: no trace can be made to put all its cells into one chain.
    factor: u64,
    /// The length of the longest run of each level so far, in sectors.
    longest: [u32; LEVELS],
    /// The number of runs of each level.
    counts: [u32; LEVELS],
}

impl<T> Default for Cells<T> {
    fn default() -> Self {
        Cells {
            runs: Vec::new(),
            items: Vec::new(),
            free: Vec::new(),
            chains: vec![NONE; 64],
            factor: foldhash::fast::RandomState::default().hash_one(0) | 1,
            longest: [0; LEVELS],
            counts: [0; LEVELS],
        }
    }
}

impl<T: Copy> Cells<T> {
    pub fn len(&self) -> usize {
        self.runs.len().saturating_sub(self.free.len())
    }

    /// Returns the first sector, the number of sectors and the item.
    pub fn get(&self, place: Place) -> (u64, u32, &T) {
        let run = &self.runs[place as usize];
        (run.sector, run.sectors, &self.items[place as usize])
    }

    /// Returns the item at a place.
    pub fn item_mut(&mut self, place: Place) -> &mut T {
        &mut self.items[place as usize]
    }

    /// Returns the chain of a cell.
    #[inline]
    fn chain(&self, level: usize, number: u64) -> usize {
        let hash = (number << 3 | level as u64).wrapping_mul(self.factor);
        // Takes the hash's highest bits; the number of chains is a power of two.
        let last = (self.chains.len() as u64).wrapping_sub(1);
        (hash >> last.leading_zeros()) as usize
    }

    /// Adds a run of at least one sector with its item.
    pub fn insert(&mut self, sector: u64, sectors: u32, item: T) {
        let next = NONE;
        let run = Run {
            sector,
            sectors,
            next,
        };
        if let Some(place) = self.free.pop() {
            self.runs[place as usize] = run;
            self.items[place as usize] = item;
            return self.link(place);
        }
        let place = self.runs.len() as Place;
        self.runs.push(run);
        self.items.push(item);
        if self.runs.len() > self.chains.len() / 4 {
            self.lengthen();
        } else {
            self.link(place);
        }
    }

    /// Puts a run first in its chain.
    #[inline]
    fn link(&mut self, place: Place) {
        let run = self.runs[place as usize];
        let longest = &mut self.longest[run.level()];
        *longest = run.sectors.max(*longest);
        self.counts[run.level()].tally(1);
        let chain = self.chain(run.level(), run.number());
        self.runs[place as usize].next = std::mem::replace(&mut self.chains[chain], place);
    }

    /// Doubles the number of chains.
    fn lengthen(&mut self) {
        self.chains = vec![NONE; self.chains.len().saturating_mul(2)];
        self.counts = [0; LEVELS];
        for place in 0..self.runs.len() {
            if self.runs[place].sectors > 0 {
                self.link(place as Place);
            }
        }
    }

    pub fn remove(&mut self, place: Place) {
        let run = self.runs[place as usize];
        let chain = self.chain(run.level(), run.number());
        let first = &mut self.chains[chain];
        if *first == place {
            *first = run.next;
        } else {
            let mut before = *first as usize;
            while self.runs[before].next != place {
                before = self.runs[before].next as usize;
            }
            self.runs[before].next = run.next;
        }
        self.release(place);
    }

    /// Frees a place that is in no chain any more.
    fn release(&mut self, place: Place) {
        let run = &mut self.runs[place as usize];
        let count = &mut self.counts[run.level()];
        *count = count.saturating_sub(1);
        run.sectors = 0;
        self.free.push(place);
    }

    /// Calls `show` with the place of each run that overlaps a range, in any order. Returns how many runs were examined.
    pub fn overlapping(&self, range: &Range<u64>, mut show: impl FnMut(Place)) -> usize {
        let overlaps = |run: &Run| run.sector < range.end && run.end() > range.start;
        let mut seen = 0usize;
        for level in 0..LEVELS {
            let Some(cells) = self.cells(level, range) else {
                continue;
            };
            // A long range may have more cells than there are runs.
            if cells.end().saturating_sub(*cells.start()) > self.runs.len() as u64 {
                (0..)
                    .zip(&self.runs)
                    .filter(|(_, run)| overlaps(run) && run.sectors > 0 && run.level() == level)
                    .for_each(|(place, _)| show(place));
                continue;
            }
            for number in cells {
                let mut place = self.chains[self.chain(level, number)];
                while let Some(run) = self.runs.get(place as usize) {
                    if overlaps(run) && run.level() == level && run.number() == number {
                        show(place);
                    }
                    seen.tally(1);
                    place = run.next;
                }
            }
        }
        seen
    }

    /// Returns the cells of a level in which runs that overlap the range may begin.
    fn cells(&self, level: usize, range: &Range<u64>) -> Option<RangeInclusive<u64>> {
        let reach = self.longest[level].checked_sub(1)?;
        let first = range.start.saturating_sub(reach.into()) >> CELL_BITS[level];
        let last = range.end.saturating_sub(1) >> CELL_BITS[level];
        (self.counts[level] > 0 && !range.is_empty()).then_some(first..=last)
    }

    /// Keeps only the `most` latest runs, by `order`, in each chain that [`overlapping`](Self::overlapping) examines for a range.
    pub fn thin<K: Ord>(&mut self, range: &Range<u64>, most: usize, order: impl Fn(&T) -> K) {
        for level in 0..LEVELS {
            let numbers = self.cells(level, range);
            for number in numbers.into_iter().flatten().take(self.runs.len()) {
                let chain = self.chain(level, number);
                self.shorten(chain, most, &order);
            }
        }
    }

    fn shorten<K: Ord>(&mut self, chain: usize, most: usize, order: impl Fn(&T) -> K) {
        let next = |place: &Place| Some(self.runs.get(*place as usize)?.next);
        let mut places: Vec<Place> =
            std::iter::successors(Some(self.chains[chain]), next).collect();
        // The last one is the end mark of the chain.
        places.pop();
        let too_many = places.len().saturating_sub(most);
        places.sort_by_cached_key(|place| order(&self.items[*place as usize]));
        let (dropped, kept) = places.split_at(too_many);
        for &place in dropped {
            self.release(place);
        }
        self.chains[chain] = NONE;
        for &place in kept {
            self.runs[place as usize].next = std::mem::replace(&mut self.chains[chain], place);
        }
    }

    /// Keeps the runs whose items are `wanted`, and frees the memory of the others.
    pub fn retain(&mut self, mut wanted: impl FnMut(&T) -> bool) {
        let Cells { runs, items, .. } = std::mem::take(self);
        for (run, item) in runs.into_iter().zip(items) {
            if run.sectors > 0 && wanted(&item) {
                self.insert(run.sector, run.sectors, item);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_removed_is_not_kept() {
        let mut cells = Cells::default();
        for at in 0..4u64 {
            cells.insert(8 * at, 8, at);
        }
        let mut places = [u32::MAX; 4];
        cells.overlapping(&(0..32), |place| {
            places[*cells.get(place).2 as usize] = place
        });
        cells.remove(places[1]);
        cells.retain(|at| *at != 3);
        let mut left = Vec::new();
        cells.overlapping(&(0..1 << 20), |place| left.push(*cells.get(place).2));
        left.sort_unstable();
        assert_eq!((left, cells.len()), (vec![0, 2], 2));
    }
}
