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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, clap::Args)]
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
        #[derive(clap::Parser)]
        struct Options {
            #[command(flatten)]
            drive: Drive,
        }
        Options::parse_from([""]).drive
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
        format!(
            "A model, not measured: {}, {} full, spare {}, blocks of {}{page}, units of {}, {}{streams}.",
            size(self.capacity as f64),
            share(self.fill),
            share(self.spare),
            binary(self.block),
            binary(self.unit),
            self.collector,
        )
    }

    /// Returns the device, or one line that says what is impossible.
    ///
    /// # Errors
    /// Returns the line.
    pub fn shape(&self) -> Result<Shape, String> {
        let (unit, block, streams) = (self.unit, self.block, self.streams);
        let page = self.page.unwrap_or(unit);
        if !unit.is_power_of_two() || !(512..=1 << 20).contains(&unit) {
            return Err(format!("--unit {unit}: a power of two from 512 to 1M"));
        }
        if page == 0 || !page.is_multiple_of(unit) {
            return Err(format!("--page {page}: a multiple of --unit, {unit}"));
        }
        let most = MOST_PER_BLOCK * unit;
        if block == 0 || !block.is_multiple_of(page) || block > most {
            let said = format!("a multiple of --page, {page}, of at most {most}");
            return Err(format!("--block {block}: {said}"));
        }
        if !(0.0..=1.0).contains(&self.fill) {
            return Err("--fill: from 0% to 100%".into());
        }
        if !(0.001..=4.0).contains(&self.spare) {
            return Err("--spare: from 0.1% to 400%".into());
        }
        if !(1..=MOST_STREAMS).contains(&streams) {
            return Err(format!("--streams: from 1 to {MOST_STREAMS}"));
        }
        let (capacity, most) = (self.capacity, MOST_UNITS * unit);
        if !(unit..=most).contains(&capacity) {
            let said = format!("at least one --unit, {unit}, and at most {most}");
            return Err(format!("--capacity {capacity}: {said}"));
        }
        let per_block = block / unit;
        let units = capacity / unit;
        // The spare is at most 400 %, so there are less than 2^31 places.
        let blocks = (units as f64 * (1.0 + self.spare)) as u64 / per_block;
        let shape = Shape {
            units: units as u32,
            blocks: blocks as u32,
            per_block: per_block as u32,
            per_page: (page / unit) as u32,
            streams,
            collector: self.collector,
        };
        let least = shape.least_blocks();
        if shape.blocks < least {
            return Err(format!(
                "with --spare {:.1}% there are {blocks} blocks, and at least {least} are needed: \
                 take a larger --capacity or --spare, or a smaller --block",
                self.spare * 100.0
            ));
        }
        Ok(shape)
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
