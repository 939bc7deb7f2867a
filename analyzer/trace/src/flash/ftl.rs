// SPDX-License-Identifier: MIT OR Apache-2.0
//! A page-mapped flash translation layer. It knows nothing of traces: it is told which unit is written or discarded, and on whose
//! account, and counts what it writes and moves.
//!
//! Memory: `place` and `owner` have 4 bytes for each unit of capacity, `unit` has 4 for each unit of flash: 12 bytes and the spare's.

use strum::IntoStaticStr;

/// No place, no unit, no block.
const NONE: u32 = u32::MAX;
/// Erased blocks that are kept for the collector's own writes, beside those that are being written.
const KEPT: u32 = 2;

/// How the next block to be collected is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Collector {
    /// The block with the fewest live units; of several, the one that has had so few for longest
    #[default]
    Greedy,
    /// The block with the highest age × (1 − u) / 2u, where u is its live share, and its age the time since a unit of it last died
    /// (Kawaguchi, Nishioka, Motoda: A Flash-Memory Based File System, USENIX 1995)
    CostBenefit,
}

/// The shape of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Units of capacity.
    pub units: u32,
    /// Blocks of flash.
    pub blocks: u32,
    /// Units of an erase block.
    pub per_block: u32,
    /// Units that are programmed at once.
    pub per_page: u32,
    /// Blocks that are open at one time: what has been moved n times goes to the nth after the host's, or to the last one.
    pub streams: u32,
    /// How blocks are chosen.
    pub collector: Collector,
}

impl Shape {
    /// Returns the fewest blocks with which a full device can be collected.
    pub fn least_blocks(&self) -> u32 {
        let full = self.units.div_ceil(self.per_block.max(1));
        let open = self.streams.saturating_add(KEPT);
        full.saturating_add(open).saturating_add(1)
    }
}

/// What a device did, in units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Written by the host.
    pub host: u64,
    /// Moved by the collector.
    pub moved: u64,
    /// Left empty because a flush programmed a page that was not full.
    pub padded: u64,
    /// Blocks erased.
    pub erased: u64,
}

impl Counts {
    /// Returns the units that the flash was written.
    pub fn flash(&self) -> u64 {
        let moved = self.host.saturating_add(self.moved);
        moved.saturating_add(self.padded)
    }

    /// Returns what the flash was written for each unit of the host; None if the host wrote nothing.
    pub fn ratio(&self) -> Option<f64> {
        (self.host > 0).then(|| self.flash() as f64 / self.host as f64)
    }

    /// Returns what was counted since `before`.
    #[must_use]
    pub fn since(&self, before: &Counts) -> Counts {
        Counts {
            host: self.host.saturating_sub(before.host),
            moved: self.moved.saturating_sub(before.moved),
            padded: self.padded.saturating_sub(before.padded),
            erased: self.erased.saturating_sub(before.erased),
        }
    }
}

/// An erase block. Blocks that are full stand in the list of those with as many live units.
#[derive(Clone, Copy, Debug)]
struct Block {
    live: u32,
    before: u32,
    after: u32,
    /// The stream that filled it.
    stream: u32,
    is_listed: bool,
    /// When a unit of it last died, in the host's units.
    died: u64,
}

/// The block that a stream writes.
#[derive(Clone, Copy, Debug)]
struct Open {
    block: u32,
    filled: u32,
}

/// A device.
#[derive(Debug)]
pub struct Ftl {
    shape: Shape,
    /// Where each unit lies.
    place: Vec<u32>,
    /// Who wrote each unit last.
    owner: Vec<u32>,
    /// Which unit lies at each place.
    unit: Vec<u32>,
    blocks: Vec<Block>,
    /// The first and the last block with this many live units. A block joins at the end when a unit dies, so the first is the one in
    /// which none has died for longest.
    lists: Vec<(u32, u32)>,
    /// No list before this one has a block.
    least: usize,
    erased: Vec<u32>,
    open: Vec<Option<Open>>,
    live: u32,
    counts: Counts,
    /// Units moved, by owner.
    moved_of: Vec<u64>,
}

impl Ftl {
    /// Makes an empty device for owners of numbers below `owners`; None if it has too few blocks.
    pub fn new(shape: Shape, owners: u32) -> Option<Ftl> {
        let places = shape.blocks.checked_mul(shape.per_block)?;
        if shape.blocks < shape.least_blocks() || shape.per_page == 0 || shape.streams == 0 {
            return None;
        }
        let block = Block {
            live: 0,
            before: NONE,
            after: NONE,
            stream: 0,
            is_listed: false,
            died: 0,
        };
        Some(Ftl {
            place: vec![NONE; shape.units as usize],
            owner: vec![0; shape.units as usize],
            unit: vec![NONE; places as usize],
            blocks: vec![block; shape.blocks as usize],
            lists: vec![(NONE, NONE); (shape.per_block as usize).saturating_add(1)],
            least: 0,
            erased: (0..shape.blocks).rev().collect(),
            open: vec![None; shape.streams as usize],
            live: 0,
            counts: Counts::default(),
            moved_of: vec![0; owners.max(1) as usize],
            shape,
        })
    }

    /// Returns what was counted so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the units moved so far, by owner.
    pub fn moved_of(&self) -> &[u64] {
        &self.moved_of
    }

    /// Returns the number of units that hold data.
    pub fn live(&self) -> u32 {
        self.live
    }

    /// The host writes a unit.
    pub fn write(&mut self, unit: u32, owner: u32) {
        self.bury(unit);
        self.counts.host += 1;
        self.owner[unit as usize] = owner;
        self.live += 1;
        while self.is_short() {
            self.collect();
        }
        self.put(unit, 0);
    }

    /// The host discards a unit.
    pub fn discard(&mut self, unit: u32) {
        self.bury(unit);
        self.place[unit as usize] = NONE;
    }

    /// The host flushes: the page that it was writing is programmed, full or not.
    pub fn flush(&mut self) {
        if let Some(Some(open)) = self.open.first_mut() {
            let end = open.filled.next_multiple_of(self.shape.per_page);
            let end = end.min(self.shape.per_block);
            self.counts.padded += u64::from(end - open.filled);
            open.filled = end;
        }
    }

    /// Returns true if there are too few erased blocks for the host to begin one.
    fn is_short(&self) -> bool {
        let needs = self.open[0].is_none_or(|open| open.filled == self.shape.per_block);
        needs && self.erased.len() <= KEPT as usize
    }

    /// Takes the data of a unit for dead, if it has any.
    fn bury(&mut self, unit: u32) {
        let place = self.place[unit as usize];
        if place == NONE {
            return;
        }
        self.unit[place as usize] = NONE;
        self.live -= 1;
        let at = place / self.shape.per_block;
        let is_listed = self.blocks[at as usize].is_listed;
        if is_listed {
            self.unlist(at);
        }
        let block = &mut self.blocks[at as usize];
        block.live -= 1;
        block.died = self.counts.host;
        if is_listed {
            self.list(at);
        }
    }

    /// Puts a unit at the next place of a stream.
    fn put(&mut self, unit: u32, stream: u32) {
        let open = match self.open[stream as usize] {
            Some(open) if open.filled < self.shape.per_block => open,
            full => {
                if let Some(open) = full {
                    self.list(open.block);
                }
                // `collect` is called before none is left.
                let block = self.erased.pop().unwrap_or_default();
                self.blocks[block as usize].stream = stream;
                Open { block, filled: 0 }
            }
        };
        let place = open.block * self.shape.per_block + open.filled;
        self.place[unit as usize] = place;
        self.unit[place as usize] = unit;
        self.blocks[open.block as usize].live += 1;
        let filled = open.filled + 1;
        self.open[stream as usize] = Some(Open { filled, ..open });
    }

    /// Moves what lives in one block to the streams' open ones, and erases it.
    fn collect(&mut self) {
        let Some(at) = self.victim() else {
            return;
        };
        self.unlist(at);
        let stream = self.blocks[at as usize].stream + 1;
        let stream = stream.min(self.shape.streams - 1);
        let from = at * self.shape.per_block;
        for place in from..from + self.shape.per_block {
            let unit = std::mem::replace(&mut self.unit[place as usize], NONE);
            if unit != NONE {
                self.counts.moved += 1;
                self.moved_of[self.owner[unit as usize] as usize] += 1;
                self.put(unit, stream);
            }
        }
        self.blocks[at as usize].live = 0;
        self.counts.erased += 1;
        self.erased.push(at);
    }

    /// Chooses the block to collect.
    fn victim(&mut self) -> Option<u32> {
        while self.lists.get(self.least)?.0 == NONE {
            self.least += 1;
        }
        let first = self.lists[self.least].0;
        if self.shape.collector == Collector::Greedy || self.least == 0 {
            return Some(first);
        }
        // The first of a list is the oldest of those with as many live units.
        let (now, whole) = (self.counts.host, f64::from(self.shape.per_block));
        let value = |&block: &u32| {
            let Block { live, died, .. } = self.blocks[block as usize];
            let used = f64::from(live) / whole;
            (now - died) as f64 * (1.0 - used) / (2.0 * used)
        };
        let heads = self.lists[self.least..].iter().map(|(first, _)| *first);
        let heads = heads.filter(|first| *first != NONE);
        heads.max_by(|a, b| value(a).total_cmp(&value(b)))
    }

    fn list(&mut self, at: u32) {
        let live = self.blocks[at as usize].live as usize;
        let (first, last) = self.lists[live];
        let block = &mut self.blocks[at as usize];
        (block.before, block.after, block.is_listed) = (last, NONE, true);
        match last {
            NONE => self.lists[live] = (at, at),
            last => {
                self.blocks[last as usize].after = at;
                self.lists[live] = (first, at);
            }
        }
        self.least = self.least.min(live);
    }

    fn unlist(&mut self, at: u32) {
        let block = &mut self.blocks[at as usize];
        block.is_listed = false;
        let (before, after, live) = (block.before, block.after, block.live as usize);
        match before {
            NONE => self.lists[live].0 = after,
            before => self.blocks[before as usize].after = after,
        }
        match after {
            NONE => self.lists[live].1 = before,
            after => self.blocks[after as usize].before = before,
        }
    }
}

#[cfg(test)]
mod tests;
