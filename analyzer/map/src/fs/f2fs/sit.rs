// SPDX-License-Identifier: MIT OR Apache-2.0
//! The segment information table (SIT), which tells the blocks of the main area that are in use.
//!
//! It has two copies, one behind the other; a bit in the checkpoint tells which copy of a block is valid.

use super::block::{self, Blocks, part, u16_of};
use super::checkpoint::Checkpoint;
use super::journal::Journals;
use super::numbers::BlkAddr;
use super::superblock::{SIT_ENTRY_SIZE, SuperBlock, sit_entries_per_block};
use crate::fs::bits;
use crate::fs::error::Result;
use crate::fs::notices::Notices;
use fixedbitset::FixedBitSet;

/// The bits of `vblocks` that count the valid blocks; the bits above them hold the segment's type.
const SIT_VBLOCKS_MASK: u16 = 0x3ff;
/// Number of blocks read at once.
const CHUNK: u32 = 256;

/// Reads the bitmaps of all segments and applies the newer entries in the journal. Returns one bit for each block of
/// the main area.
pub fn read(
    blocks: Blocks<'_>,
    sb: &SuperBlock,
    cp: &Checkpoint,
    journals: &Journals,
    notices: &mut Notices,
) -> Result<FixedBitSet> {
    let mut valid = sb.no_main_blocks();
    let mut put = |segno: u32, entry: &[u8]| {
        let set = put(&mut valid, segno, entry);
        let vblocks = u16_of(entry, 0) & SIT_VBLOCKS_MASK;
        if set != u32::from(vblocks) {
            notices.push(format!(
                "SIT: segment {segno} has {set} valid blocks, and counts {vblocks}"
            ));
        }
    };
    let in_journal = |segno: u32| journals.sit.iter().rfind(|(number, _)| *number == segno);
    let segments = sb.segment_count_main;
    let per_block = sit_entries_per_block(blocks.size);
    let count = segments.div_ceil(per_block);
    let mut first = 0;
    while first < count {
        let run = run_of(cp, first, count);
        let at = address(sb, cp, first);
        let segnos = [first, first.saturating_add(run)].map(|n| n.saturating_mul(per_block));
        let newer = |(segno, _): &(u32, Vec<u8>)| (segnos[0]..segnos[1]).contains(segno);
        if blocks.is_hole(at, run) && !journals.sit.iter().any(newer) {
            first = first.saturating_add(run);
            continue;
        }
        let buf = blocks.read(at, run, "SIT")?;
        for nth in 0..run {
            let segno = first.saturating_add(nth).saturating_mul(per_block);
            let entries = blocks
                .nth(&buf, nth)
                .chunks_exact(block::index(SIT_ENTRY_SIZE));
            for (segno, entry) in (segno..segments).zip(entries) {
                put(segno, in_journal(segno).map_or(entry, |(_, newer)| newer));
            }
        }
        first = first.saturating_add(run);
    }
    for (segno, _) in journals.sit.iter().filter(|(segno, _)| *segno >= segments) {
        notices.push(format!(
            "SIT journal: segment {segno} is behind the main area"
        ));
    }
    Ok(valid)
}

/// Stores the bitmap of one segment. Returns its number of valid blocks.
fn put(valid: &mut FixedBitSet, segno: u32, entry: &[u8]) -> u32 {
    let map = bits::highest_first(part(entry, 2, 64));
    let words = map.as_slice();
    let first = words.len().saturating_mul(block::index(segno));
    let here = valid.as_mut_slice().iter_mut().skip(first);
    here.zip(words).for_each(|(here, word)| *here = *word);
    u32::try_from(map.count_ones(..)).unwrap_or(u32::MAX)
}

/// Returns the number of SIT blocks from `first` on that are consecutive on the disk.
fn run_of(cp: &Checkpoint, first: u32, blocks: u32) -> u32 {
    let bit = |n| cp.sit_bitmap.contains(block::index(n));
    let end = blocks.min(first.saturating_add(CHUNK));
    let other = (first..end).find(|&n| bit(n) != bit(first));
    other.unwrap_or(end).saturating_sub(first)
}

/// Returns the address of a SIT block's valid copy: `current_sit_addr`.
fn address(sb: &SuperBlock, cp: &Checkpoint, block: u32) -> BlkAddr {
    let second = if cp.sit_bitmap.contains(block::index(block)) {
        sb.sit_blocks()
    } else {
        0
    };
    sb.sit_blkaddr.plus(block).plus(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_block_is_the_highest_bit() {
        let mut entry = vec![0; block::index(SIT_ENTRY_SIZE)];
        entry[2] = 0x81;
        entry[65] = 0x01;
        let mut valid = FixedBitSet::with_capacity(1024);
        assert_eq!(put(&mut valid, 1, &entry), 3);
        assert_eq!(valid.ones().collect::<Vec<_>>(), [512, 519, 1023]);
    }
}
