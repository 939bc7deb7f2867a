// SPDX-License-Identifier: MIT OR Apache-2.0
//! Repeats a recording on a device until what the flash is written for each byte is steady.

use std::collections::BTreeMap;
use std::time::Duration;

use super::device::{Discards, Drive};
use super::ftl::{Counts, Ftl};
use super::load::{Load, What};
use super::{Level, Part, Saw};

/// A lap is at least this part of the flash.
const LAP: u64 = 8;
/// The ratio is steady if those of so many laps differ by less than this share of their mean, and collections have begun.
const LAPS: usize = 4;
const STEADY: f64 = 0.02;
/// After so many laps, of at least so many units in all, it is taken as it is.
const MOST_LAPS: usize = 40;
const MOST_UNITS: u64 = 1 << 23;

/// A device, on which several copies of a recording run.
pub struct Run<'l> {
    load: &'l Load,
    discard: Discards,
    ftl: Ftl,
    /// Units of capacity.
    units: u32,
    /// Units of a lap.
    lap: u64,
    /// How many copies run at one time, so that their device is as large as this one.
    pub copies: u32,
    /// Bytes of the units that are written, for each byte of the recording's.
    pub rounded: f64,
    /// Units from here on are empty.
    full: u32,
    /// The next act of the first copy.
    at: usize,
    repetitions: u64,
}

impl<'l> Run<'l> {
    /// Makes a new device.
    ///
    /// # Errors
    /// Returns one line that says what is impossible.
    pub fn new(drive: &Drive, load: &'l Load) -> Result<Run<'l>, String> {
        let (shape, capacity) = (drive.shape()?, drive.capacity);
        if load.writes == 0 {
            return Err("nothing was written".into());
        }
        if load.units > shape.units {
            let bytes = u64::from(load.units) * drive.unit;
            return Err(format!(
                "it writes {bytes} different bytes, which have no place in {capacity}"
            ));
        }
        let recorded = load.device_bytes.filter(|bytes| *bytes > 0);
        let recorded = recorded.unwrap_or(capacity);
        let copies = (capacity as f64 / recorded as f64).round() as u32;
        let copies = copies.clamp(1, shape.units / load.units);
        Ok(Run {
            load,
            discard: drive.discard,
            ftl: Ftl::new(shape, load.owners.len()),
            units: shape.units,
            lap: u64::from(shape.places()) / LAP,
            copies,
            rounded: (load.writes * drive.unit) as f64 / load.bytes.max(1) as f64,
            full: load.units * copies,
            at: 0,
            repetitions: 0,
        })
    }

    /// Returns the share of the capacity that the copies write.
    pub fn own_share(&self) -> f64 {
        f64::from(self.own()) / f64::from(self.units)
    }

    fn own(&self) -> u32 {
        self.load.units * self.copies
    }

    /// Returns the units of a share of the capacity, of which the copies have theirs.
    fn share(&self, fill: f64) -> u32 {
        let units = (f64::from(self.units) * fill) as u32;
        units.clamp(self.own(), self.units)
    }

    /// Makes a device that was in use at a level of fill.
    ///
    /// # Errors
    /// As [`Run::new`].
    pub fn aged(drive: &Drive, load: &'l Load, fill: f64) -> Result<Run<'l>, String> {
        let mut run = Run::new(drive, load)?;
        run.age(fill);
        Ok(run)
    }

    /// Writes what is there before: all of it mixed, so that hot and cold units lie in the same blocks, as on a device that was in use.
    fn age(&mut self, fill: f64) {
        self.full = self.share(fill);
        let all = u64::from(self.full);
        // Steps that have no divisor in common with the number of units visit each of them once.
        let golden = (all as f64 * 0.618_033_988_75) as u64;
        let step = (golden..).find(|step| divisor(*step, all) <= 1);
        let units = (0..all).map(|nth| nth * step.unwrap_or(1) % all);
        units.for_each(|unit| self.ftl.write(unit as u32, 0));
    }

    /// Adds data that is never written again, in one go, or discards what was added last. Then repeats the recording until it is
    /// steady.
    pub fn at(&mut self, fill: f64) -> Level {
        let all = self.share(fill);
        (self.full..all).for_each(|unit| self.ftl.write(unit, 0));
        (all..self.full).for_each(|unit| self.ftl.discard(unit));
        self.full = all;
        let steady = self.settle(u64::MAX);
        Level { fill, ..steady }
    }

    /// Discards what is free every so often. What lies between two discards ends when the ratio is steady, as nothing changes after
    /// that.
    pub fn saw(&mut self, every: Duration) -> Saw {
        let lasts = u128::from(self.load.duration_ns.max(1));
        let repetitions = u64::try_from(every.as_nanos().div_ceil(lasts)).unwrap_or(u64::MAX);
        let mut saw = Saw::default();
        // The first discard finds more than the later ones.
        for _ in 0..3 {
            let live = self.ftl.live;
            (0..self.copies).for_each(|copy| self.free(copy));
            saw.units = u64::from(live - self.ftl.live);
            let first = self.settle(1);
            saw.after = first.ratio;
            let last = match repetitions {
                1 => first,
                more => self.settle(more - 1),
            };
            saw.before = last.greatest.max(last.ratio);
        }
        saw
    }

    /// Discards what the snapshot says is free in a copy.
    fn free(&mut self, copy: u32) {
        let begin = copy * self.load.units;
        for unit in self.load.free.iter().cloned().flatten() {
            self.ftl.discard(begin + unit);
        }
    }

    /// Has every copy repeat the recording once. Each is at another place in it, and they take turns, so that a unit is written again
    /// after as large a part of the device was written as when it was recorded.
    fn repeat(&mut self) {
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
        let act = &self.load.acts[at];
        let begin = copy * self.load.units;
        let units = act.units.clone().map(|unit| begin + unit as u32);
        match act.what {
            What::Write(owner) => units.for_each(|unit| self.ftl.write(unit, owner)),
            What::Discard if self.discard == Discards::None => {}
            What::Discard => units.for_each(|unit| self.ftl.discard(unit)),
            What::Flush => self.ftl.flush(),
        }
        if at + 1 == self.load.acts.len() && self.discard == Discards::Always {
            self.free(copy);
        }
    }

    /// Repeats the recording until the ratio is steady, or `most` repetitions are done.
    pub fn settle(&mut self, most: u64) -> Level {
        let (begun, written) = (self.repetitions, self.ftl.counts.flash());
        // The counts before each of the last laps and behind them.
        let mut counts = vec![self.ftl.counts.clone()];
        for lap in 1.. {
            let end = self.ftl.counts.host + self.lap;
            while self.ftl.counts.host < end && self.repetitions - begun < most {
                self.repeat();
            }
            counts.push(self.ftl.counts.clone());
            counts.drain(..counts.len().saturating_sub(LAPS + 1));
            let now = &self.ftl.counts;
            let is_long = lap >= MOST_LAPS && now.flash() - written >= MOST_UNITS;
            if is_steady(&counts) || is_long || self.repetitions - begun >= most {
                break;
            }
        }
        let (ratios, all) = (ratios(&counts), self.ftl.counts.since(&counts[0]));
        let each = self.rounded / all.host.max(1) as f64;
        Level {
            fill: self.own_share(),
            ratio: all.ratio() * self.rounded,
            moved: all.moved() as f64 * each,
            padded: all.padded as f64 * each,
            least: ratios.iter().copied().fold(f64::INFINITY, f64::min) * self.rounded,
            greatest: ratios.iter().copied().fold(0.0, f64::max) * self.rounded,
            repetitions: self.repetitions - begun,
            is_steady: is_steady(&counts),
            parts: self.parts(&all, each),
        }
    }

    /// Divides what was moved among the owners.
    fn parts(&self, all: &Counts, each: f64) -> Vec<Part> {
        let mut sums = BTreeMap::new();
        for (owner, moved) in self.load.owners.iter().zip(&all.moved) {
            *sums.entry(owner).or_insert(0) += moved;
        }
        let part = |(owner, units)| Part {
            owner: Clone::clone(owner),
            share: units as f64 / all.moved() as f64,
            moved: units as f64 * each,
        };
        let mut parts: Vec<Part> = sums.into_iter().filter(|(_, n)| *n > 0).map(part).collect();
        parts.sort_by(|a, b| b.share.total_cmp(&a.share));
        parts
    }
}

/// Returns the ratio of each lap.
fn ratios(counts: &[Counts]) -> Vec<f64> {
    let laps = counts.windows(2).map(|two| two[1].since(&two[0]));
    laps.map(|lap| lap.ratio()).collect()
}

fn is_steady(counts: &[Counts]) -> bool {
    let ratios = ratios(counts);
    let mean = ratios.iter().sum::<f64>() / LAPS as f64;
    let is_near = |ratio: &f64| (ratio - mean).abs() < mean * STEADY / 2.0;
    ratios.len() == LAPS && counts[LAPS].erased > 0 && ratios.iter().all(is_near)
}

/// The greatest common divisor.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}
