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
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
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
        let shape = drive.shape()?;
        if load.writes == 0 {
            return Err("nothing was written".into());
        }
        let recorded = recorded
            .filter(|bytes| *bytes > 0)
            .unwrap_or(drive.capacity);
        let wanted = (drive.capacity as f64 / recorded as f64).round();
        let copies = wanted.clamp(1.0, f64::from(shape.units / load.units.max(1)).max(1.0)) as u32;
        let mut device = Run::new(drive, load, copies).ok_or_else(|| {
            let units = u64::from(load.units).saturating_mul(drive.unit);
            let capacity = drive.capacity;
            format!("it writes {units} different bytes, which have no place in {capacity}")
        })?;
        let own_share = device.own_share();
        let rounded = (load.writes * drive.unit) as f64 / load.bytes.max(1) as f64;
        let level = |fill: f64, steady: &Steady| {
            let host = steady.counts.host.max(1) as f64;
            Level {
                fill,
                ratio: steady.ratio() * rounded,
                moved: steady.counts.moved as f64 / host * rounded,
                padded: steady.counts.padded as f64 / host * rounded,
                least: steady.between.0 * rounded,
                greatest: steady.between.1 * rounded,
                repetitions: steady.repetitions,
                is_steady: steady.is_steady,
            }
        };
        let given = drive.fill.max(own_share);
        let mut levels: Vec<f64> = LEVELS.iter().copied().filter(|l| *l > own_share).collect();
        levels.push(given);
        levels.sort_by(f64::total_cmp);
        levels.dedup();
        let new = level(own_share, &device.settle(1)).ratio;
        device.age(levels.first().copied().unwrap_or(given));
        let (mut curve, mut at, mut parts) = (Vec::new(), Level::default(), Vec::new());
        for &fill in &levels {
            device.fill(fill);
            let steady = device.settle(u64::MAX);
            curve.push(level(fill, &steady));
            if fill == given {
                at = level(fill, &steady);
                parts = shares(load, &steady, at.moved);
            }
        }
        device.fill(1.0);
        let full = level(1.0, &device.settle(u64::MAX));
        device.fill(given);
        let after_fstrim = level(given, &device.settle(u64::MAX));
        let saw = drive
            .fstrim_every
            .map(|every| saw(&mut device, load, every, rounded));
        Ok(Model {
            copies,
            own_share,
            device_bytes: load.bytes,
            rounded,
            at,
            parts,
            curve,
            new,
            full,
            after_fstrim,
            saw,
        })
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

/// Discards what is free every so often. What lies between two discards ends when the ratio is steady, as nothing changes after that.
fn saw(device: &mut Run<'_>, load: &Load, every: Duration, rounded: f64) -> Saw {
    let lasts = u128::from(load.duration_ns.max(1));
    let repetitions = u64::try_from(every.as_nanos().div_ceil(lasts)).unwrap_or(u64::MAX);
    let mut saw = Saw {
        after: 0.0,
        before: 0.0,
        units: 0,
    };
    // The first discard finds more than the later ones.
    for _ in 0..3 {
        saw.units = device.fstrim();
        let first = device.settle(1);
        let last = match repetitions {
            1 => first.clone(),
            more => device.settle(more - 1),
        };
        saw.after = first.ratio() * rounded;
        saw.before = last.between.1.max(last.ratio()) * rounded;
    }
    saw
}

#[cfg(test)]
mod tests;
