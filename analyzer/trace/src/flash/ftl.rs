// SPDX-License-Identifier: MIT OR Apache-2.0
//! A page-mapped flash translation layer. It knows nothing of traces: it is told which unit is written or discarded, and on whose
//! account, and counts what it writes and moves.
//!
//! Memory: `place` and `owner` have 4 bytes for each unit of capacity, `unit` has 4 for each unit of flash: 12 bytes and the spare's.

use std::ops::Range;

use serde::Serialize;
use strum::Display;

/// No place, no unit, no block.
const NONE: u32 = u32::MAX;
/// Erased blocks that are kept for the collector's own writes, beside those that are being written.
const KEPT: u32 = 2;

/// How the next block to be collected is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Display, Serialize, clap::ValueEnum)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
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
        self.units.div_ceil(self.per_block) + self.streams + KEPT + 1
    }

    /// Returns the units of flash.
    pub fn places(&self) -> u32 {
        self.blocks * self.per_block
    }
}

/// What a device did, in units.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Written by the host.
    pub host: u64,
    /// Left empty because a flush programmed a page that was not full.
    pub padded: u64,
    /// Moved by the collector, by owner.
    pub moved: Vec<u64>,
    /// Blocks erased.
    pub erased: u64,
}

impl Counts {
    /// Returns the units that the collector moved.
    pub fn moved(&self) -> u64 {
        self.moved.iter().sum()
    }

    /// Returns the units that the flash was written.
    pub fn flash(&self) -> u64 {
        self.host + self.padded + self.moved()
    }

    /// Returns what the flash was written for each unit of the host.
    pub fn ratio(&self) -> f64 {
        self.flash() as f64 / self.host.max(1) as f64
    }

    /// Returns what was counted since `before`.
    #[must_use]
    pub fn since(&self, before: &Counts) -> Counts {
        let moved = self.moved.iter().zip(&before.moved);
        Counts {
            host: self.host - before.host,
            padded: self.padded - before.padded,
            moved: moved.map(|(now, before)| now - before).collect(),
            erased: self.erased - before.erased,
        }
    }
}

/// An erase block, or the head of a list. A block that is full stands in the list of those with as many live units. It joins at the end
/// when a unit dies, so the first is the one in which none has died for longest. Others stand alone.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    live: u32,
    /// The stream that filled it.
    stream: u32,
    /// When a unit of it last died, in the host's units.
    died: u64,
    before: u32,
    after: u32,
}

/// A device.
#[derive(Debug)]
pub struct Ftl {
    /// Its shape.
    pub shape: Shape,
    /// Where each unit lies.
    place: Vec<u32>,
    /// Who wrote each unit last.
    owner: Vec<u32>,
    /// Which unit lies at each place.
    unit: Vec<u32>,
    /// The blocks, then the head of the list for each number of live units.
    blocks: Vec<Block>,
    /// No list before this one has a block.
    least: u32,
    erased: Vec<u32>,
    /// The places that are left of the block that each stream writes.
    open: Vec<Range<u32>>,
    /// Units that hold data.
    pub live: u32,
    /// What was counted so far.
    pub counts: Counts,
}

impl Ftl {
    /// Makes an empty device for owners of numbers below `owners`.
    pub fn new(shape: Shape, owners: usize) -> Ftl {
        let alone = |at| Block {
            before: at,
            after: at,
            ..Block::default()
        };
        Ftl {
            place: vec![NONE; shape.units as usize],
            owner: vec![0; shape.units as usize],
            unit: vec![NONE; shape.places() as usize],
            blocks: (0..=shape.blocks + shape.per_block).map(alone).collect(),
            least: 0,
            erased: (0..shape.blocks).rev().collect(),
            open: vec![0..0; shape.streams as usize],
            live: 0,
            counts: Counts {
                moved: vec![0; owners],
                ..Counts::default()
            },
            shape,
        }
    }

    /// The host writes a unit.
    pub fn write(&mut self, unit: u32, owner: u32) {
        self.discard(unit);
        self.counts.host += 1;
        self.owner[unit as usize] = owner;
        self.live += 1;
        while self.open[0].is_empty()
            && self.erased.len() <= KEPT as usize
            && let Some(block) = self.victim()
        {
            self.collect(block);
        }
        self.put(unit, 0);
    }

    /// The host discards a unit.
    pub fn discard(&mut self, unit: u32) {
        let place = std::mem::replace(&mut self.place[unit as usize], NONE);
        if place == NONE {
            return;
        }
        self.unit[place as usize] = NONE;
        self.live -= 1;
        let at = place / self.shape.per_block;
        let block = &mut self.blocks[at as usize];
        block.live -= 1;
        block.died = self.counts.host;
        // The block of a stream is in no list.
        if block.after != at {
            self.unlist(at);
            self.list(at);
        }
    }

    /// The host flushes: the page that it was writing is programmed, full or not.
    pub fn flush(&mut self) {
        let open = &mut self.open[0];
        let next = open.start.next_multiple_of(self.shape.per_page);
        let next = next.min(open.end);
        self.counts.padded += u64::from(next - open.start);
        open.start = next;
    }

    /// Puts a unit at the next place of a stream.
    fn put(&mut self, unit: u32, stream: u32) {
        let next = self.open[stream as usize].next();
        let place = next.unwrap_or_else(|| self.begin(stream));
        self.place[unit as usize] = place;
        self.unit[place as usize] = unit;
        self.blocks[(place / self.shape.per_block) as usize].live += 1;
    }

    /// Begins a stream's next block; returns its first place.
    fn begin(&mut self, stream: u32) -> u32 {
        let (per_block, full) = (self.shape.per_block, self.open[stream as usize].end);
        if full > 0 {
            self.list(full / per_block - 1);
        }
        // Blocks are collected before none is left.
        let at = self.erased.pop().unwrap_or_default();
        self.blocks[at as usize].stream = stream;
        let first = at * per_block;
        self.open[stream as usize] = first + 1..first + per_block;
        first
    }

    /// Moves what lives in a block to the streams' open ones, and erases it.
    fn collect(&mut self, at: u32) {
        self.unlist(at);
        let stream = self.blocks[at as usize].stream + 1;
        let stream = stream.min(self.shape.streams - 1);
        let first = at * self.shape.per_block;
        for place in first..first + self.shape.per_block {
            let unit = std::mem::replace(&mut self.unit[place as usize], NONE);
            if unit != NONE {
                self.counts.moved[self.owner[unit as usize] as usize] += 1;
                self.put(unit, stream);
            }
        }
        self.blocks[at as usize].live = 0;
        self.counts.erased += 1;
        self.erased.push(at);
    }

    /// Chooses the block to collect.
    fn victim(&mut self) -> Option<u32> {
        let head = |live| self.blocks[(self.shape.blocks + live) as usize].after;
        let lists = (self.least..=self.shape.per_block).map(head);
        // An empty list's head stands alone.
        let firsts = lists.filter(|first| *first < self.shape.blocks);
        let mut firsts = firsts.peekable();
        // The first of a list is the oldest of those with as many live units.
        let (now, whole) = (self.counts.host, f64::from(self.shape.per_block));
        let value = |&at: &u32| {
            let Block { live, died, .. } = self.blocks[at as usize];
            let used = f64::from(live) / whole;
            (now - died) as f64 * (1.0 - used) / (2.0 * used)
        };
        let least = self.blocks[*firsts.peek()? as usize].live;
        let chosen = match self.shape.collector {
            Collector::CostBenefit if least > 0 => {
                firsts.max_by(|a, b| value(a).total_cmp(&value(b)))
            }
            _ => firsts.next(),
        };
        self.least = least;
        chosen
    }

    fn list(&mut self, at: u32) {
        let live = self.blocks[at as usize].live;
        let head = self.shape.blocks + live;
        let last = std::mem::replace(&mut self.blocks[head as usize].before, at);
        self.blocks[last as usize].after = at;
        let block = &mut self.blocks[at as usize];
        (block.before, block.after) = (last, head);
        self.least = self.least.min(live);
    }

    fn unlist(&mut self, at: u32) {
        let block = &mut self.blocks[at as usize];
        let (before, after) = (block.before, block.after);
        (block.before, block.after) = (at, at);
        self.blocks[before as usize].after = after;
        self.blocks[after as usize].before = before;
    }
}

#[cfg(test)]
mod tests;
