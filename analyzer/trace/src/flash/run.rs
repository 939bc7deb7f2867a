// SPDX-License-Identifier: MIT OR Apache-2.0
//! Repeats a recording on a device until what the flash is written for each byte is steady.

use std::time::Duration;

use super::device::{Discards, Drive};
use super::ftl::{Counts, Ftl};
use super::load::{Load, What};
use super::{Level, Part, Saw, sums};

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
    drive: &'l Drive,
    load: &'l Load,
    ftl: Ftl,
    /// How many copies run at one time, so that their device is as large as this one.
    pub copies: u32,
    /// Bytes of the units that are written, for each byte of the recording's.
    pub rounded: f64,
    /// Units of the copies.
    own: u32,
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
    pub fn new(drive: &'l Drive, load: &'l Load) -> Result<Run<'l>, String> {
        let (shape, capacity) = (drive.shape()?, drive.capacity);
        let different = load.units.saturating_mul(drive.unit);
        if load.writes == 0 {
            return Err("nothing was written".into());
        }
        if different > capacity {
            return Err(format!(
                "it writes {different} different bytes, which have no place in {capacity}"
            ));
        }
        let recorded = load.device_bytes.filter(|bytes| *bytes > 0);
        let copies = (capacity as f64 / recorded.unwrap_or(capacity) as f64).round() as u32;
        // They have a place in the shape's units, of which there are fewer than 2^32.
        let own = load.units as u32;
        let copies = copies.clamp(1, shape.units / own);
        Ok(Run {
            drive,
            load,
            ftl: Ftl::new(shape, load.owners.len()),
            copies,
            rounded: (load.writes * drive.unit) as f64 / load.bytes.max(1) as f64,
            own: own * copies,
            full: own * copies,
            at: 0,
            repetitions: 0,
        })
    }

    /// Returns the units of a share of the capacity, of which the copies have theirs.
    fn share(&self, fill: f64) -> u32 {
        let units = self.ftl.shape.units;
        let filled = (f64::from(units) * fill) as u32;
        filled.clamp(self.own, units)
    }

    /// Has the device be in use at a level of fill: writes what is there before, all of it mixed, so that hot and cold units lie in the
    /// same blocks.
    pub fn aged(mut self, fill: f64) -> Run<'l> {
        self.full = self.share(fill);
        let all = u64::from(self.full);
        // Steps that have no divisor in common with the number of units visit each of them once.
        let golden = (all as f64 * 0.618_033_988_75) as u64;
        let step = (golden..).find(|step| divisor(*step, all) <= 1);
        let units = (0..all).map(|nth| nth * step.unwrap_or(1) % all);
        units.for_each(|unit| self.ftl.write(unit as u32, 0));
        self
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
        let more = every.as_nanos().saturating_sub(1) / lasts;
        let mut saw = Saw::default();
        // The first discard finds more than the later ones.
        for _ in 0..3 {
            let live = self.ftl.live;
            (0..self.copies).for_each(|copy| self.free(copy));
            saw.units = u64::from(live - self.ftl.live);
            let first = self.settle(1);
            saw.after = first.ratio;
            let last = match more {
                0 => first,
                more => self.settle(u64::try_from(more).unwrap_or(u64::MAX)),
            };
            saw.before = last.greatest.max(last.ratio);
        }
        saw
    }

    /// Discards what the snapshot says is free in a copy.
    fn free(&mut self, copy: u32) {
        let begin = copy * self.load.units as u32;
        let units = self.load.free.iter().cloned().flatten();
        units.for_each(|unit| self.ftl.discard(begin + unit as u32));
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
        let begin = copy * self.load.units as u32;
        let units = act.units.clone().map(|unit| begin + unit as u32);
        match act.what {
            What::Write(owner) => units.for_each(|unit| self.ftl.write(unit, owner)),
            What::Discard if self.drive.discard == Discards::None => {}
            What::Discard => units.for_each(|unit| self.ftl.discard(unit)),
            What::Flush => self.ftl.flush(),
        }
        if at + 1 == self.load.acts.len() && self.drive.discard == Discards::Always {
            self.free(copy);
        }
    }

    /// Repeats the recording until the ratio is steady, or `most` repetitions are done.
    pub fn settle(&mut self, most: u64) -> Level {
        let (begun, written) = (self.repetitions, self.ftl.counts.flash());
        let least = u64::from(self.ftl.shape.places()) / LAP;
        // The counts before each of the last laps and behind them.
        let mut counts = vec![self.ftl.counts.clone()];
        for lap in 1.. {
            let end = self.ftl.counts.host + least;
            while self.ftl.counts.host < end && self.repetitions - begun < most {
                self.repeat();
            }
            counts.push(self.ftl.counts.clone());
            counts.drain(..counts.len().saturating_sub(LAPS + 1));
            let is_long = lap >= MOST_LAPS && self.ftl.counts.flash() - written >= MOST_UNITS;
            if ratios(&counts).1 || is_long || self.repetitions - begun >= most {
                break;
            }
        }
        let (ratios, is_steady) = ratios(&counts);
        let all = self.ftl.counts.since(&counts[0]);
        let each = self.rounded / all.host.max(1) as f64;
        Level {
            fill: f64::from(self.own) / f64::from(self.ftl.shape.units),
            ratio: all.ratio() * self.rounded,
            moved: all.moved() as f64 * each,
            padded: all.padded as f64 * each,
            least: ratios.iter().copied().fold(f64::INFINITY, f64::min) * self.rounded,
            greatest: ratios.iter().copied().fold(0.0, f64::max) * self.rounded,
            repetitions: self.repetitions - begun,
            is_steady,
            parts: self.parts(&all, each),
        }
    }

    /// Divides what was moved among the owners.
    fn parts(&self, all: &Counts, each: f64) -> Vec<Part> {
        let moved = all.moved.iter().map(|units| *units as f64);
        let moved = self.load.owners.iter().zip(moved);
        let moved = moved.filter(|(_, units)| *units > 0.0);
        let part = |(owner, units)| Part {
            owner: Clone::clone(owner),
            share: units / all.moved() as f64,
            moved: units * each,
        };
        sums(moved).into_iter().map(part).collect()
    }
}

/// Returns the ratio of each lap, and whether they are steady.
fn ratios(counts: &[Counts]) -> (Vec<f64>, bool) {
    let laps = counts.windows(2).map(|two| two[1].since(&two[0]));
    let ratios: Vec<f64> = laps.map(|lap| lap.ratio()).collect();
    let mean = ratios.iter().sum::<f64>() / LAPS as f64;
    let is_near = |ratio: &f64| (ratio - mean).abs() < mean * STEADY / 2.0;
    let is_steady = counts.get(LAPS).is_some_and(|last| last.erased > 0);
    let is_steady = is_steady && ratios.iter().all(is_near);
    (ratios, is_steady)
}

/// The greatest common divisor.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}
