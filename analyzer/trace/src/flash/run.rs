// SPDX-License-Identifier: MIT OR Apache-2.0
//! Repeats a recording on a device until what the flash is written for each byte is steady.

use super::device::{Discards, Drive};
use super::ftl::{Counts, Ftl};
use super::load::{Act, Load};

/// A lap is at least this part of the flash.
const LAP: u64 = 8;
/// The ratio is steady if those of so many laps differ by less than this share of their mean, and collections have begun.
const LAPS: usize = 4;
const STEADY: f64 = 0.02;
/// After so many laps, of at least so many units in all, it is taken as it is.
const MOST_LAPS: usize = 40;
const MOST_UNITS: u64 = 1 << 23;

/// What a device did in its last laps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steady {
    /// Units of the last laps.
    pub counts: Counts,
    /// Units moved in the last laps, by owner; 0 is what was there before.
    pub moved_of: Vec<u64>,
    /// The least and the greatest ratio of a lap.
    pub between: (f64, f64),
    /// How often the recording was repeated.
    pub repetitions: u64,
    /// True if the ratio is steady.
    pub is_steady: bool,
}

impl Steady {
    /// Returns what the flash is written for each unit of the host's.
    pub fn ratio(&self) -> f64 {
        self.counts.ratio().unwrap_or(1.0)
    }
}

/// A device, on which several copies of a recording run.
pub struct Run<'l> {
    load: &'l Load,
    discards: Discards,
    ftl: Ftl,
    /// Units of capacity.
    units: u32,
    /// Places of flash.
    places: u64,
    copies: u32,
    /// Units from here on hold what was there before.
    cold: u32,
    /// The next act of the first copy.
    at: usize,
    repetitions: u64,
}

impl<'l> Run<'l> {
    /// Makes a new device for so many copies of the recording; None if they have no place, or the device cannot be.
    pub fn new(drive: &Drive, load: &'l Load, copies: u32) -> Option<Run<'l>> {
        let shape = drive.shape().ok()?;
        let own = load.units.checked_mul(copies)?;
        let owners = u32::try_from(load.owners.len()).ok()?.checked_add(1)?;
        (own <= shape.units && copies > 0).then_some(())?;
        Some(Run {
            load,
            discards: drive.discards,
            ftl: Ftl::new(shape, owners)?,
            units: shape.units,
            places: u64::from(shape.blocks) * u64::from(shape.per_block),
            copies,
            cold: own,
            at: 0,
            repetitions: 0,
        })
    }

    /// Returns the share of the capacity that the copies write.
    pub fn own_share(&self) -> f64 {
        f64::from(self.own()) / f64::from(self.units)
    }

    fn own(&self) -> u32 {
        self.load.units.saturating_mul(self.copies)
    }

    /// Writes what is there before: all of it mixed, so that hot and cold units lie in the same blocks, as on a device that was in use.
    pub fn age(&mut self, fill: f64) {
        let all = self.share(fill);
        // Steps that have no divisor in common with the number of units visit each of them once.
        let golden = (f64::from(all) * 0.618_033_988_75) as u32;
        let step = (golden..)
            .find(|step| divisor(*step, all) <= 1)
            .unwrap_or(1);
        let mut unit = 0_u64;
        for _ in 0..all {
            self.ftl.write(u32::try_from(unit).unwrap_or_default(), 0);
            unit = (unit + u64::from(step)) % u64::from(all);
        }
        self.cold = all;
    }

    /// Adds data that is never written again, in one go, or discards what was added last.
    pub fn fill(&mut self, fill: f64) {
        let all = self.share(fill);
        (self.cold..all).for_each(|unit| self.ftl.write(unit, 0));
        (all..self.cold).for_each(|unit| self.ftl.discard(unit));
        self.cold = all;
    }

    /// Returns the units of a share of the capacity, of which the copies have theirs.
    fn share(&self, fill: f64) -> u32 {
        let units = (f64::from(self.units) * fill) as u32;
        units.clamp(self.own(), self.units)
    }

    /// Discards what the snapshot says is free, in all copies; returns the number of units that had data.
    pub fn fstrim(&mut self) -> u64 {
        let before = self.ftl.live();
        (0..self.copies).for_each(|copy| self.free(copy));
        u64::from(before - self.ftl.live())
    }

    fn free(&mut self, copy: u32) {
        let begin = copy * self.load.units;
        for unit in self.load.free.iter().cloned().flatten() {
            self.ftl.discard(begin + unit);
        }
    }

    /// Has every copy repeat the recording once. Each is at another place in it, and they take turns, so that a unit is written again
    /// after as large a part of the device was written as when it was recorded.
    pub fn repeat(&mut self) {
        let (acts, copies) = (self.load.acts.len(), self.copies as usize);
        for _ in 0..acts {
            for copy in 0..copies {
                let at = (self.at + copy * acts / copies) % acts;
                self.act(at, copy as u32);
            }
            self.at = (self.at + 1) % acts;
        }
        self.repetitions += 1;
    }

    fn act(&mut self, at: usize, copy: u32) {
        let begin = copy * self.load.units;
        match self.load.acts[at] {
            Act::Write {
                first,
                count,
                owner,
            } => {
                for unit in first..first + count {
                    self.ftl.write(begin + unit, owner);
                }
            }
            Act::Discard { .. } if self.discards == Discards::None => {}
            Act::Discard { first, count } => {
                (first..first + count).for_each(|unit| self.ftl.discard(begin + unit));
            }
            Act::Flush => self.ftl.flush(),
        }
        if at + 1 == self.load.acts.len() && self.discards == Discards::Always {
            self.free(copy);
        }
    }

    /// Repeats the recording until the ratio is steady, or `most` repetitions are done.
    pub fn settle(&mut self, most: u64) -> Steady {
        let (begun, written) = (self.repetitions, self.ftl.counts().flash());
        // The owners' units before each lap, and all of them.
        let mut before = vec![(self.ftl.counts(), self.ftl.moved_of().to_vec())];
        let mut ratios = Vec::new();
        let is_steady = loop {
            let lap = self.ftl.counts().host + self.places / LAP;
            while self.ftl.counts().host < lap && self.repetitions - begun < most {
                self.repeat();
            }
            let counts = self.ftl.counts();
            let last = before.last().map(|(last, _)| counts.since(last));
            ratios.extend(last.and_then(|lap| lap.ratio()));
            let has_begun = counts.erased > 0;
            let is_steady = has_begun && is_steady(&ratios);
            let is_long = ratios.len() >= MOST_LAPS && counts.flash() - written >= MOST_UNITS;
            if is_steady || is_long || self.repetitions - begun >= most {
                break is_steady;
            }
            before.push((counts, self.ftl.moved_of().to_vec()));
            if before.len() > LAPS {
                before.remove(0);
            }
        };
        let last = &ratios[ratios.len().saturating_sub(LAPS)..];
        let fold = |of: fn(f64, f64) -> f64| last.iter().copied().reduce(of).unwrap_or(1.0);
        let (first, moved) = &before[0];
        let now = self.ftl.moved_of().iter().zip(moved);
        Steady {
            counts: self.ftl.counts().since(first),
            moved_of: now.map(|(now, before)| now - before).collect(),
            between: (fold(f64::min), fold(f64::max)),
            repetitions: self.repetitions - begun,
            is_steady,
        }
    }
}

fn is_steady(ratios: &[f64]) -> bool {
    let Some(last) = ratios.len().checked_sub(LAPS).map(|from| &ratios[from..]) else {
        return false;
    };
    let mean = last.iter().sum::<f64>() / LAPS as f64;
    last.iter()
        .all(|ratio| (ratio - mean).abs() < mean * STEADY / 2.0)
}

/// The greatest common divisor.
fn divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { divisor(b, a % b) }
}
