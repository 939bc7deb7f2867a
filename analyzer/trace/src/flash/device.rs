// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the user says of a drive, and what is possible.

use std::time::Duration;

use strum::IntoStaticStr;

use super::ftl::{Collector, Shape};

/// The most units of capacity: 4 GiB of memory.
const MOST_UNITS: u64 = 1 << 28;
/// The most units of a block.
const MOST_PER_BLOCK: u64 = 1 << 16;
/// The most blocks that are open at one time.
const MOST_STREAMS: u32 = 16;

/// Which discards reach the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Discards {
    /// Those that were recorded
    #[default]
    AsRecorded,
    /// None: what trim saves is the difference
    None,
    /// Those that were recorded, and at the end of each repetition all that the snapshot says is free
    Always,
}

/// A drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drive {
    /// Bytes of capacity.
    pub capacity: u64,
    /// Flash beyond the capacity, as a share of it.
    pub spare: f64,
    /// Bytes that are programmed at once.
    pub page: u64,
    /// Bytes that are erased at once.
    pub block: u64,
    /// Bytes that are mapped at once.
    pub unit: u64,
    /// How blocks are chosen.
    pub collector: Collector,
    /// Blocks that are open at one time.
    pub streams: u32,
    /// The share of the capacity that has data.
    pub fill: f64,
    /// Which discards reach the drive.
    pub discards: Discards,
    /// Time between two discards of all that the snapshot says is free.
    pub fstrim_every: Option<Duration>,
}

impl Drive {
    /// Returns the device, or one line that says what is impossible.
    ///
    /// # Errors
    /// Returns the line.
    pub fn shape(&self) -> Result<Shape, String> {
        let Drive {
            unit, page, block, ..
        } = *self;
        if !unit.is_power_of_two() || !(512..=1 << 20).contains(&unit) {
            return Err(format!("--unit {unit}: a power of two from 512 to 1M"));
        }
        if page == 0 || !page.is_multiple_of(unit) {
            return Err(format!("--page {page}: a multiple of --unit, {unit}"));
        }
        if block == 0 || !block.is_multiple_of(page) || block / unit > MOST_PER_BLOCK {
            let most = MOST_PER_BLOCK.saturating_mul(unit);
            return Err(format!(
                "--block {block}: a multiple of --page, {page}, of at most {most}"
            ));
        }
        if !(0.0..=1.0).contains(&self.fill) {
            return Err("--fill: from 0% to 100%".into());
        }
        if !(0.001..=4.0).contains(&self.spare) {
            return Err("--spare: from 0.1% to 400%".into());
        }
        if !(1..=MOST_STREAMS).contains(&self.streams) {
            return Err(format!("--streams: from 1 to {MOST_STREAMS}"));
        }
        let units = self.capacity / unit;
        if units == 0 || units > MOST_UNITS {
            let most = MOST_UNITS.saturating_mul(unit);
            return Err(format!(
                "--capacity {}: at least one --unit, {unit}, and at most {most}",
                self.capacity
            ));
        }
        let per_block = block / unit;
        // The spare is at most 400 % of 2^28 units.
        let places = (units as f64 * (1.0 + self.spare)) as u64;
        let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX - 1);
        let shape = Shape {
            units: narrow(units),
            blocks: narrow(places / per_block),
            per_block: narrow(per_block),
            per_page: narrow(page / unit),
            streams: self.streams,
            collector: self.collector,
        };
        let least = shape.least_blocks();
        if shape.blocks < least {
            return Err(format!(
                "with --spare {:.1}% there are {} blocks, and at least {least} are needed: \
                 take a larger --capacity or --spare, or a smaller --block",
                self.spare * 100.0,
                shape.blocks
            ));
        }
        Ok(shape)
    }
}
