// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GUID table of partitions (UEFI specification, chapter 5).
//!
//! ```text
//! block 1, a copy in the last: │ "EFI PART" │ … │ 16: CRC u32 │ … │ 72: first block of the entries u64 │ their number u32 │ length u32 │
//! entry: │ type, 16 bytes │ GUID, 16 bytes │ first block u64 │ last block u64 │ attributes u64 │ name, UTF-16 │
//! ```

use super::mbr::{self, PROTECTIVE};
use super::partition::{Partition, SECTOR};
use crate::fs::image::Image;
use crate::fs::le::{u32_at, u64_at};

const SIGNATURE: &[u8] = b"EFI PART";
const HEADER_LEN: usize = 92;
const CRC: usize = 16;
const NAME: std::ops::Range<usize> = 56..128;
/// The most entries and bytes that are read; tables have 128 entries of 128 bytes.
const MOST_ENTRIES: u32 = 4096;
const MOST_BYTES: u32 = 4096;

/// Reads the partitions; empty if there is no such table.
pub fn read(disk: &Image) -> Vec<Partition> {
    let is_protected = mbr::entries(disk, 0).iter().any(|e| e.kind == PROTECTIVE);
    let found = |block: u64| {
        // By the header's place: a disk with blocks of 512 bytes has it at byte 512.
        table(disk, block, block).or_else(|| {
            let last = disk.bytes().checked_sub(block)?;
            table(disk, last, block)
        })
    };
    match is_protected {
        true => [512, 4096].into_iter().find_map(found).unwrap_or_default(),
        false => Vec::new(),
    }
}

/// Reads the table whose header is at byte `at` of a disk with such blocks; None if there is none, or a damaged one.
fn table(disk: &Image, at: u64, block: u64) -> Option<Vec<Partition>> {
    let header = disk.read(at, HEADER_LEN, "GPT").ok()?;
    let mut plain = header.clone();
    plain.get_mut(CRC..)?.first_chunk_mut::<4>()?.fill(0);
    let is_sound = header.starts_with(SIGNATURE)
        && u32_at(&header, 12)? == u32::try_from(HEADER_LEN).ok()?
        && u32_at(&header, CRC)? == crc32fast::hash(&plain);
    let first = u64_at(&header, 72)
        .filter(|_| is_sound)?
        .checked_mul(block)?;
    let entries = u32_at(&header, 80)?.min(MOST_ENTRIES);
    let len = u32_at(&header, 84).filter(|len| (128..=MOST_BYTES).contains(len))?;
    let mut found = Vec::new();
    for nth in 0..entries {
        let at = u64::from(nth).checked_mul(len.into())?.checked_add(first)?;
        let Ok(entry) = disk.read(at, usize::try_from(len).ok()?, "GPT") else {
            break;
        };
        found.extend(partition(&entry, nth.saturating_add(1), block));
    }
    Some(found)
}

/// Parses an entry; None if it is not in use.
fn partition(entry: &[u8], number: u32, block: u64) -> Option<Partition> {
    let is_used = entry.get(..16)?.iter().any(|&byte| byte != 0);
    let per_block = block.checked_div(SECTOR)?;
    let (first, last) = (u64_at(entry, 32)?, u64_at(entry, 40)?);
    let blocks = last.checked_sub(first)?.checked_add(1)?;
    let units = entry.get(NAME)?.chunks_exact(2);
    let units: Vec<u16> = units
        .filter_map(|unit| unit.first_chunk().map(|unit| u16::from_le_bytes(*unit)))
        .take_while(|&unit| unit != 0)
        .collect();
    is_used.then_some(Partition {
        number,
        start_sector: first.checked_mul(per_block)?,
        sectors: blocks.checked_mul(per_block)?,
        name: String::from_utf16_lossy(&units),
    })
}
