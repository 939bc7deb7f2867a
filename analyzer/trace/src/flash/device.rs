// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the user says of a drive, and what is possible.

use std::time::Duration;

use clap::Parser;
use mostrace_bundle::units;
use serde::{Serialize, Serializer};

use super::ftl::{Collector, Shape};
use crate::text::size;

/// The most units of capacity: 4 GiB of memory.
const MOST_UNITS: u64 = 1 << 28;
/// The most units of a block.
const MOST_PER_BLOCK: u64 = 1 << 16;
/// The most blocks that are open at one time.
const MOST_STREAMS: u32 = 16;

/// Which discards reach the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Parser)]
pub struct Drive {
    /// The drive's capacity
    #[arg(long, value_name = "SIZE", default_value = "32GB", value_parser = units::amount)]
    pub capacity: u64,
    /// The share of it that has data
    #[arg(long, value_name = "PERCENT", default_value = "80%", value_parser = units::percent)]
    pub fill: f64,
    /// Flash beyond the capacity, as a share of it
    #[arg(long, value_name = "PERCENT", default_value = "7%", value_parser = units::percent)]
    pub spare: f64,
    /// What is programmed at once. If it is more than a unit, a flush leaves the rest of a page empty, as drives do that would
    /// otherwise lose it with the power [default: a unit]
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    pub page: Option<u64>,
    /// What is erased at once
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = units::size)]
    pub block: u64,
    /// What is mapped at once
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = units::size)]
    pub unit: u64,
    /// How the next block to be erased is chosen
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    pub collector: Collector,
    /// Blocks that are written at one time: with 2, what is moved has its own; with more, what was moved again, too
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub streams: u32,
    /// Which discards reach the drive
    #[arg(long, value_name = "WHICH", value_enum, default_value_t)]
    pub discard: Discards,
    /// Discard so often all that the snapshot says is free, such as 1h, 1d
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    #[serde(rename = "fstrim_every_s", serialize_with = "seconds")]
    pub fstrim_every: Option<Duration>,
}

fn seconds<S: Serializer>(every: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    every.map(|every| every.as_secs_f64()).serialize(to)
}

impl Default for Drive {
    /// The drive if no option is given.
    fn default() -> Drive {
        Drive::parse_from([""])
    }
}

impl Drive {
    /// Returns true if it is to be told what is free.
    pub fn needs_free(&self) -> bool {
        self.discard == Discards::Always || self.fstrim_every.is_some()
    }

    /// Returns the line that says that it is a model, and of what.
    pub fn words(&self) -> String {
        let page = self.page.filter(|page| *page != self.unit);
        let page = page.map_or(String::new(), |page| format!(", pages of {}", binary(page)));
        let streams = match self.streams {
            1 => String::new(),
            several => format!(", {several} streams"),
        };
        let (capacity, collector) = (size(self.capacity as f64), self.collector);
        let [fill, spare] = [self.fill, self.spare].map(share);
        let [block, unit] = [self.block, self.unit].map(binary);
        format!(
            "A model, not measured: {capacity}, {fill} full, spare {spare}, blocks of {block}{page}, units of {unit}, {collector}{streams}."
        )
    }

    /// Returns how many drives like this one have a place in the memory that the largest one takes; at least 1.
    ///
    /// # Errors
    /// Returns a line that says what is impossible.
    pub fn at_once(&self) -> Result<usize, String> {
        let units = u64::from(self.shape()?.units);
        Ok((MOST_UNITS / units.max(1)).max(1) as usize)
    }

    /// Returns the device, or one line that says what is impossible.
    ///
    /// # Errors
    /// Returns the line.
    pub fn shape(&self) -> Result<Shape, String> {
        self.check()?;
        let (unit, units) = (self.unit, self.capacity / self.unit);
        let per_block = self.block / unit;
        // The spare is at most 400 %, so there are less than 2^31 places.
        let blocks = (units as f64 * (1.0 + self.spare)) as u64 / per_block;
        let shape = Shape {
            units: units as u32,
            blocks: blocks as u32,
            per_block: per_block as u32,
            per_page: (self.page.unwrap_or(unit) / unit) as u32,
            streams: self.streams,
            collector: self.collector,
        };
        let (least, spare) = (shape.least_blocks(), self.spare * 100.0);
        if shape.blocks < least {
            return Err(format!(
                "with --spare {spare:.1}% there are {blocks} blocks, and at least {least} are needed: \
                 take a larger --capacity or --spare, or a smaller --block"
            ));
        }
        Ok(shape)
    }

    /// Checks each option by those before it.
    fn check(&self) -> Result<(), String> {
        let (unit, block, capacity) = (self.unit, self.block, self.capacity);
        let page = self.page.unwrap_or(unit);
        let [most_block, most] = [MOST_PER_BLOCK, MOST_UNITS].map(|n| n.saturating_mul(unit));
        let impossible = if !unit.is_power_of_two() || !(512..=1 << 20).contains(&unit) {
            format!("--unit {unit}: a power of two from 512 to 1M")
        } else if page == 0 || !page.is_multiple_of(unit) {
            format!("--page {page}: a multiple of --unit, {unit}")
        } else if block == 0 || !block.is_multiple_of(page) || block > most_block {
            format!("--block {block}: a multiple of --page, {page}, of at most {most_block}")
        } else if !(0.0..=1.0).contains(&self.fill) {
            "--fill: from 0% to 100%".into()
        } else if !(0.001..=4.0).contains(&self.spare) {
            "--spare: from 0.1% to 400%".into()
        } else if !(1..=MOST_STREAMS).contains(&self.streams) {
            format!("--streams: from 1 to {MOST_STREAMS}")
        } else if !(unit..=most).contains(&capacity) {
            format!("--capacity {capacity}: at least one --unit, {unit}, and at most {most}")
        } else {
            return Ok(());
        };
        Err(impossible)
    }
}

/// Formats the size of a block or a page.
fn binary(bytes: u64) -> String {
    match bytes {
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

/// Formats a share in per cent.
pub fn share(of: f64) -> String {
    format!("{} %", (of * 1000.0).round() / 10.0)
}
