// SPDX-License-Identifier: MIT OR Apache-2.0
//! A model of what a drive's flash translation layer writes to the flash if a recording is repeated on it, and of whose data it moves.
//!
//! ```text
//! Step ─ Taking ─ Load ─┐
//!                Drive ─┴─ Run (ageing, repetitions) ─ Ftl (blocks, collection) ─ Model
//! ```

mod device;
mod free;
mod ftl;
mod load;
mod run;

use std::time::Duration;

use serde::Serialize;

pub use device::{Discards, Drive};
pub use free::free;
pub use ftl::{Collector, Shape};
pub use load::{Act, Load, Owner, Taking};
pub use run::{Run, Steady};

/// The levels of the curve.
const LEVELS: [f64; 7] = [0.50, 0.60, 0.70, 0.80, 0.90, 0.95, 0.98];
/// The name of what nobody wrote in the recording.
const BEFORE: &str = "what was there before";

/// What the flash is written, at one level of fill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Level {
    /// The share of the capacity that has data.
    pub fill: f64,
    /// Bytes that the flash is written for each byte that the device is given.
    pub ratio: f64,
    /// Of these, bytes that the collector moved.
    pub moved: f64,
    /// Of these, bytes that a flush left empty.
    pub padded: f64,
    /// The least ratio of the last laps.
    pub least: f64,
    /// The greatest one.
    pub greatest: f64,
    /// How often the recording was repeated.
    pub repetitions: u64,
    /// True if the ratio had become steady.
    pub is_steady: bool,
}

/// An owner's part of what is moved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// The owner.
    #[serde(flatten)]
    pub owner: Owner,
    /// Its share of what is moved; all shares sum to 1.
    pub share: f64,
    /// Bytes moved for each byte that the device is given.
    pub moved: f64,
}

/// The ratio right after all free units were discarded, and right before it happens the next time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Saw {
    /// The ratio after it.
    pub after: f64,
    /// The ratio before it.
    pub before: f64,
    /// Units that are discarded.
    pub units: u64,
}

/// The result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Model {
    /// How many copies of the recording run at one time, so that its device is as large as this one.
    pub copies: u32,
    /// The share of the capacity that they write.
    pub own_share: f64,
    /// Bytes that the recording writes.
    pub device_bytes: u64,
    /// Bytes of the units that it writes, for each of these.
    pub rounded: f64,
    /// The given level.
    pub at: Level,
    /// Who caused what is moved at that level, the largest part first.
    pub parts: Vec<Part>,
    /// The levels.
    pub curve: Vec<Level>,
    /// A new device: nothing was collected yet.
    pub new: f64,
    /// After all of its capacity was written and nothing was discarded.
    pub full: Level,
    /// After all but the given level was discarded then.
    pub after_fstrim: Level,
    /// With regular discards.
    pub saw: Option<Saw>,
}

impl Model {
    /// Repeats the recording on the drive. `recorded` is the capacity of the recorded device in bytes, if it is known.
    ///
    /// # Errors
    /// Returns one line that says what is impossible.
    pub fn of(drive: &Drive, load: &Load, recorded: Option<u64>) -> Result<Model, String> {
        if load.writes == 0 {
            return Err("nothing was written".into());
        }
        let copies = copies(drive, load, recorded)?;
        let mut life = Life::of(drive, load, copies)?;
        let own_share = life.device.own_share();
        let given = drive.fill.max(own_share);
        let new = life.settle(own_share, 1).0.ratio;
        let levels = levels(own_share, given);
        life.device.age(levels.first().copied().unwrap_or(given));
        let (mut curve, mut at, mut parts) = (Vec::new(), Level::default(), Vec::new());
        for fill in levels {
            let (level, steady) = life.at(fill);
            curve.push(level);
            if fill == given {
                (at, parts) = (level, shares(load, &steady, level.moved));
            }
        }
        let (full, _) = life.at(1.0);
        let (after_fstrim, _) = life.at(given);
        let saw = drive.fstrim_every;
        Ok(Model {
            copies,
            own_share,
            device_bytes: load.bytes,
            rounded: life.rounded,
            at,
            parts,
            curve,
            new,
            full,
            after_fstrim,
            saw: saw.map(|every| life.saw(load, every)),
        })
    }
}

/// Returns how many copies of the recording run, so that its device is as large as the drive.
fn copies(drive: &Drive, load: &Load, recorded: Option<u64>) -> Result<u32, String> {
    let recorded = recorded.filter(|bytes| *bytes > 0);
    let wanted = drive.capacity as f64 / recorded.unwrap_or(drive.capacity) as f64;
    let most = drive.shape()?.units / load.units.max(1);
    Ok(wanted.round().clamp(1.0, f64::from(most).max(1.0)) as u32)
}

/// Returns the levels of the curve that can be, the given one among them.
fn levels(own_share: f64, given: f64) -> Vec<f64> {
    let possible = LEVELS.iter().copied().filter(|level| *level > own_share);
    let mut levels: Vec<f64> = possible.chain([given]).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    levels
}

/// A drive that is filled step by step.
struct Life<'l> {
    device: Run<'l>,
    /// Bytes of the units that are written, for each byte of the recording's.
    rounded: f64,
}

impl<'l> Life<'l> {
    fn of(drive: &Drive, load: &'l Load, copies: u32) -> Result<Life<'l>, String> {
        let device = Run::new(drive, load, copies).ok_or_else(|| {
            let units = u64::from(load.units).saturating_mul(drive.unit);
            let capacity = drive.capacity;
            format!("it writes {units} different bytes, which have no place in {capacity}")
        })?;
        let rounded = (load.writes * drive.unit) as f64 / load.bytes.max(1) as f64;
        Ok(Life { device, rounded })
    }

    /// Fills the drive to a level, and repeats the recording until it is steady.
    fn at(&mut self, fill: f64) -> (Level, Steady) {
        self.device.fill(fill);
        self.settle(fill, u64::MAX)
    }

    fn settle(&mut self, fill: f64, most: u64) -> (Level, Steady) {
        let steady = self.device.settle(most);
        let each = self.rounded / steady.counts.host.max(1) as f64;
        let level = Level {
            fill,
            ratio: steady.ratio() * self.rounded,
            moved: steady.counts.moved as f64 * each,
            padded: steady.counts.padded as f64 * each,
            least: steady.between.0 * self.rounded,
            greatest: steady.between.1 * self.rounded,
            repetitions: steady.repetitions,
            is_steady: steady.is_steady,
        };
        (level, steady)
    }

    /// Discards what is free every so often. What lies between two discards ends when the ratio is steady, as nothing changes after
    /// that.
    fn saw(&mut self, load: &Load, every: Duration) -> Saw {
        let lasts = u128::from(load.duration_ns.max(1));
        let repetitions = u64::try_from(every.as_nanos().div_ceil(lasts)).unwrap_or(u64::MAX);
        let mut saw = Saw::default();
        // The first discard finds more than the later ones.
        for _ in 0..3 {
            saw.units = self.device.fstrim();
            let first = self.device.settle(1);
            saw.after = first.ratio() * self.rounded;
            let last = match repetitions {
                1 => first,
                more => self.device.settle(more - 1),
            };
            saw.before = last.between.1.max(last.ratio()) * self.rounded;
        }
        saw
    }
}

/// Divides what was moved among the owners.
fn shares(load: &Load, steady: &Steady, moved: f64) -> Vec<Part> {
    let before = Owner {
        layer: BEFORE.into(),
        ..Owner::default()
    };
    let all: u64 = steady.moved_of.iter().sum();
    let owners = std::iter::once(&before).chain(&load.owners);
    let each = owners
        .zip(&steady.moved_of)
        .filter(|(_, units)| **units > 0);
    let mut parts: Vec<Part> = each
        .map(|(owner, units)| {
            let share = *units as f64 / all as f64;
            Part {
                owner: owner.clone(),
                share,
                moved: share * moved,
            }
        })
        .collect();
    parts.sort_by(|a, b| {
        b.share
            .total_cmp(&a.share)
            .then_with(|| a.owner.cmp(&b.owner))
    });
    parts
}

#[cfg(test)]
mod tests;
