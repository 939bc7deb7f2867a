// SPDX-License-Identifier: MIT OR Apache-2.0
//! The DOS table of partitions, in the first sector.
//!
//! ```text
//! 446: four entries of 16 bytes │ 55 aa
//! entry: │ status u8 │ 3 │ type u8 │ 3 │ first sector u32 │ sectors u32 │
//! ```
//! An extended partition is a chain of sectors with a table each: one logical partition, and the next sector of the chain.

use super::partition::{Partition, SECTOR};
use crate::fs::image::Image;
use crate::fs::le::u32_at;

const TABLE: usize = 446;
const ENTRY_LEN: usize = 16;
/// The types of extended partitions: DOS's, with LBA, and Linux's.
const EXTENDED: [u8; 3] = [0x05, 0x0f, 0x85];
/// The type in a GPT's protective table.
pub const PROTECTIVE: u8 = 0xee;
/// The number of the first logical partition.
const LOGICAL: u32 = 5;
/// The most logical partitions that are looked for; the kernel has 256 numbers for all.
const MOST: u32 = 256;

/// An entry in use.
#[derive(Clone, Copy)]
pub struct PartitionEntry {
    number: u32,
    pub kind: u8,
    first: u64,
    sectors: u64,
}

/// Reads the partitions, ordered by their numbers.
pub fn read(disk: &Image) -> Vec<Partition> {
    let entries = entries(disk, 0);
    let mut all = Vec::new();
    for entry in &entries {
        match EXTENDED.contains(&entry.kind) {
            true => logical(disk, entry.first, &mut all),
            false => all.push(partition(entry.number, entry.first, entry.sectors)),
        }
    }
    all.retain(|one| one.start_sector.saturating_mul(SECTOR) < disk.bytes());
    all.sort_by_key(|one| one.number);
    all
}

/// Follows the chain of an extended partition that begins at sector `start`.
fn logical(disk: &Image, start: u64, all: &mut Vec<Partition>) {
    let mut at = start;
    for number in LOGICAL..MOST {
        let entries = entries(disk, at);
        let is_link = |entry: &&PartitionEntry| EXTENDED.contains(&entry.kind);
        if let Some(own) = entries.iter().find(|entry| !is_link(entry)) {
            all.push(partition(number, at.saturating_add(own.first), own.sectors));
        }
        let Some(next) = entries.iter().find(is_link) else {
            return;
        };
        // A chain that leads back would have no end.
        let next = start.saturating_add(next.first);
        if next <= at {
            return;
        }
        at = next;
    }
}

fn partition(number: u32, start_sector: u64, sectors: u64) -> Partition {
    Partition {
        number,
        start_sector,
        sectors,
        name: String::new(),
    }
}

/// Returns the entries of the table in a sector; none if it is not one.
pub fn entries(disk: &Image, sector: u64) -> Vec<PartitionEntry> {
    let at = sector.saturating_mul(SECTOR);
    let bytes = disk.read(at, 512, "partition table").unwrap_or_default();
    if bytes.get(510..512) != Some(&[0x55, 0xaa]) {
        return Vec::new();
    }
    let table = bytes.get(TABLE..510).unwrap_or_default();
    let raw = table.chunks_exact(ENTRY_LEN);
    // The first sector of a filesystem has the same signature, and code where the table would be.
    let status = |entry: &[u8]| entry.first().copied();
    if !raw
        .clone()
        .all(|entry| matches!(status(entry), Some(0 | 0x80)))
    {
        return Vec::new();
    }
    let entry = |(number, raw): (u32, &[u8])| {
        let kind = *raw.get(4)?;
        let (first, sectors) = (u32_at(raw, 8)?, u32_at(raw, 12)?);
        let is_used = kind != 0 && sectors > 0;
        is_used.then_some(PartitionEntry {
            number,
            kind,
            first: first.into(),
            sectors: sectors.into(),
        })
    };
    (1..).zip(raw).filter_map(entry).collect()
}
