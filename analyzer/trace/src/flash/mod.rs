// SPDX-License-Identifier: MIT OR Apache-2.0
//! A model of what a drive's flash translation layer writes to the flash if a recording is repeated on it, and of whose data it moves.
//!
//! ```text
//! Step ─ Taking ─ Load ─┐
//!                Drive ─┴─ Run (ageing, repetitions) ─ Ftl (blocks, collection) ─ Model
//! ```

mod device;
mod ftl;
mod load;
mod run;

use std::collections::BTreeMap;

use serde::Serialize;

pub use device::{Discards, Drive, share};
pub use load::{Load, Owner, Taking, free};
use run::Run;

/// The levels of the curve.
const LEVELS: [f64; 7] = [0.50, 0.60, 0.70, 0.80, 0.90, 0.95, 0.98];

/// What the flash is written, at one level of fill.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
    /// Who caused what is moved, the largest part first.
    pub parts: Vec<Part>,
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
    /// The levels, each of a drive that was filled to it from the beginning.
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
    /// Repeats the recording on the drive.
    ///
    /// # Errors
    /// Returns one line that says what is impossible.
    pub fn of(drive: &Drive, load: &Load) -> Result<Model, String> {
        let new = Run::new(drive, load)?.settle(1);
        let own_share = new.fill;
        let given = drive.fill.max(own_share);
        let is_other = |level: &f64| *level > own_share && *level != given;
        let others = LEVELS.into_iter().filter(is_other);
        let others = others.map(|level| Ok(Run::new(drive, load)?.aged(level).at(level)));
        let mut curve: Vec<Level> = others.collect::<Result<_, String>>()?;
        let mut life = Run::new(drive, load)?.aged(given);
        let at = life.at(given);
        curve.push(at.clone());
        curve.sort_by(|a, b| a.fill.total_cmp(&b.fill));
        let [full, after_fstrim] = [1.0, given].map(|fill| life.at(fill));
        Ok(Model {
            copies: life.copies,
            own_share,
            device_bytes: load.bytes,
            rounded: life.rounded,
            at,
            curve,
            new: new.ratio,
            full,
            after_fstrim,
            saw: drive.fstrim_every.map(|every| life.saw(every)),
        })
    }
}

/// Sums up by key, the largest sum first.
pub fn sums<K: Ord>(items: impl IntoIterator<Item = (K, f64)>) -> Vec<(K, f64)> {
    let mut sums = BTreeMap::new();
    for (key, more) in items {
        *sums.entry(key).or_insert(0.0) += more;
    }
    let mut sums: Vec<(K, f64)> = sums.into_iter().collect();
    sums.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    sums
}

#[cfg(test)]
mod tests;
