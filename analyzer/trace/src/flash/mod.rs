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
use std::iter;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

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
        let (new, copies, rounded) = {
            let mut run = Run::new(drive, load)?;
            (run.settle(1), run.copies, run.rounded)
        };
        let own_share = new.fill;
        let given = drive.fill.max(own_share);
        let is_other = |level: &f64| *level > own_share && *level != given;
        let others = LEVELS.into_iter().filter(is_other);
        // The longest first.
        let mut plans = vec![(vec![given, 1.0, given], drive.fstrim_every)];
        plans.extend(others.map(|level| (vec![level], None)));
        let mut lives = lives(drive, load, &plans)?.into_iter();
        let (levels, saw) = lives.next().unwrap_or_default();
        let [at, full, after_fstrim] = <[Level; 3]>::try_from(levels).unwrap_or_default();
        let mut curve: Vec<Level> = lives.flat_map(|(levels, _)| levels).collect();
        curve.push(at.clone());
        curve.sort_by(|a, b| a.fill.total_cmp(&b.fill));
        Ok(Model {
            copies,
            own_share,
            device_bytes: load.bytes,
            rounded,
            at,
            curve,
            new: new.ratio,
            full,
            after_fstrim,
            saw,
        })
    }
}

/// The levels at which a drive that was filled to the first of them is, one after the other, and how often all that is free is discarded
/// then.
type Plan = (Vec<f64>, Option<Duration>);
/// These are the levels that it reached, and what the discards did.
type Life = (Vec<Level>, Option<Saw>);

/// Follows the plans, each on a drive of its own, several at a time.
fn lives(drive: &Drive, load: &Load, plans: &[Plan]) -> Result<Vec<Life>, String> {
    let live = |(fills, every): &Plan| {
        let first = fills.first().copied().unwrap_or_default();
        let mut run = Run::new(drive, load)?.aged(first);
        let levels = fills.iter().map(|fill| run.at(*fill)).collect();
        Ok((levels, every.map(|every| run.saw(every))))
    };
    let next = AtomicUsize::new(0);
    let work = || {
        let numbers = iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let plans = numbers.map_while(|nth| Some((nth, plans.get(nth)?)));
        plans.map(|(nth, plan)| (nth, live(plan))).collect()
    };
    let cpus = thread::available_parallelism().map_or(1, NonZero::get);
    let at_once = cpus.min(drive.at_once()?);
    let mut lives: Vec<(usize, Result<Life, String>)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        let ended = workers.into_iter().map(|worker| worker.join());
        let lives = ended.map(|lives: thread::Result<Vec<_>>| {
            lives.unwrap_or_else(|panic| resume_unwind(panic))
        });
        lives.flatten().collect()
    });
    lives.sort_by_key(|(nth, _)| *nth);
    lives.into_iter().map(|(_, life)| life).collect()
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
