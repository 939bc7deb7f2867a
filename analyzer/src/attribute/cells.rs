// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of sectors, found by what they overlap.
//!
//! The disk is cut into cells, on each of a few levels for runs of about the same length. The cells of
//! a level are as long as its runs may be: a run is kept by the cell that it begins in, and reaches
//! into the next one at most. So a lookup need not reach back by the length of the longest discard,
//! and what lies elsewhere on the disk costs nothing.

use std::hash::BuildHasher;
use std::ops::{Range, RangeInclusive};

use crate::tally::Tally;

/// Runs of less than 64 sectors, of less than 1024, and so on; 32 bits of bytes are 23 of sectors.
const LEVELS: usize = 6;

/// log2 of the length of each level's cells, in sectors.
const CELL_BITS: [u32; LEVELS] = [6, 10, 14, 18, 22, 26];

/// Where a piece is kept.
pub(super) type Place = u32;

/// No place.
const NONE: Place = Place::MAX;

/// A run of sectors, and the next one in the same chain. Small, as lookups go through many.
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

    /// The number of its cell.
    #[inline]
    fn number(&self) -> u64 {
        self.sector >> CELL_BITS[self.level()]
    }
}

/// Runs of sectors that may overlap, with something kept for each.
pub(super) struct Cells<T> {
    runs: Vec<Run>,
    items: Vec<T>,
    free: Vec<Place>,
    /// The first of each chain. A cell's runs are all in one, with those of other cells; the chains
    /// are several times as many as the runs, so that most hold nothing.
    chains: Vec<Place>,
    /// Odd, and different each time: no trace can put all its cells into one chain.
    factor: u64,
    /// The most sectors that a run of each level had.
    longest: [u32; LEVELS],
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
        }
    }
}

impl<T: Copy> Cells<T> {
    pub fn len(&self) -> usize {
        self.runs.len().saturating_sub(self.free.len())
    }

    /// First sector, sectors, and what is kept.
    pub fn get(&self, place: Place) -> (u64, u32, &T) {
        let run = &self.runs[place as usize];
        (run.sector, run.sectors, &self.items[place as usize])
    }

    /// What is kept at a place.
    pub fn item_mut(&mut self, place: Place) -> &mut T {
        &mut self.items[place as usize]
    }

    /// The chain of a cell.
    #[inline]
    fn chain(&self, level: usize, number: u64) -> usize {
        let hash = (number << 3 | level as u64).wrapping_mul(self.factor);
        // Its highest bits: as many as there are chains, a power of two.
        let last = (self.chains.len() as u64).wrapping_sub(1);
        (hash >> last.leading_zeros()) as usize
    }

    /// Keeps `item` for a run of one sector at least.
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
        let chain = self.chain(run.level(), run.number());
        self.runs[place as usize].next = std::mem::replace(&mut self.chains[chain], place);
    }

    /// Makes more chains.
    fn lengthen(&mut self) {
        self.chains = vec![NONE; self.chains.len().saturating_mul(2)];
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
        self.runs[place as usize].sectors = 0;
        self.free.push(place);
    }

    /// Shows the places of what overlaps a range, in any order. Returns how many runs it went through.
    pub fn overlapping(&self, range: &Range<u64>, mut show: impl FnMut(Place)) -> usize {
        let overlaps = |run: &Run| run.sector < range.end && run.end() > range.start;
        let mut seen = 0usize;
        for level in 0..LEVELS {
            let Some(cells) = self.cells(level, range) else {
                continue;
            };
            // A long range has more cells than there are runs.
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

    /// The cells of a level in which runs that overlap a range may begin.
    fn cells(&self, level: usize, range: &Range<u64>) -> Option<RangeInclusive<u64>> {
        let reach = self.longest[level].checked_sub(1)?;
        let first = range.start.saturating_sub(reach.into()) >> CELL_BITS[level];
        let last = range.end.saturating_sub(1) >> CELL_BITS[level];
        (!range.is_empty()).then_some(first..=last)
    }

    /// Drops all but the `most` latest runs, by `order`, of each chain that [`overlapping`](Self::overlapping) goes through for a
    /// range.
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
        // Where the chain ends there is no place.
        places.pop();
        let too_many = places.len().saturating_sub(most);
        places.sort_by_cached_key(|place| order(&self.items[*place as usize]));
        let (dropped, kept) = places.split_at(too_many);
        for &place in dropped {
            self.runs[place as usize].sectors = 0;
            self.free.push(place);
        }
        self.chains[chain] = NONE;
        for &place in kept {
            self.runs[place as usize].next = std::mem::replace(&mut self.chains[chain], place);
        }
    }

    /// Keeps those that are `wanted`, and no more memory than they need.
    pub fn retain(&mut self, mut wanted: impl FnMut(&T) -> bool) {
        let Cells { runs, items, .. } = std::mem::take(self);
        for (run, item) in runs.into_iter().zip(items) {
            if run.sectors > 0 && wanted(&item) {
                self.insert(run.sector, run.sectors, item);
            }
        }
    }
}
