// SPDX-License-Identifier: MIT OR Apache-2.0
//! The segment information table: which blocks of the main area are in use.
//!
//! Two copies, one behind the other; a bit of the checkpoint says in which a block counts.

use super::bits::{Bits, test_bit};
use super::block::{self, BLOCKS_PER_SEG, u16_of};
use super::checkpoint::Checkpoint;
use super::journal::Journals;
use super::superblock::SuperBlock;
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::notices::Notices;

const SIT_ENTRY_PER_BLOCK: u32 = 55;
const ENTRY_SIZE: usize = 74;
/// Bits of `vblocks` that count the valid blocks; above them is the segment's type.
const SIT_VBLOCKS_MASK: u16 = 0x3ff;
/// Blocks read at once.
const CHUNK: u32 = 256;

/// Reads the bitmaps of all segments, and what the journal has newer. One bit for each block of
/// the main area.
pub fn read(
    image: &Image,
    sb: &SuperBlock,
    cp: &Checkpoint,
    journals: &Journals,
    notices: &mut Notices,
) -> Result<Bits> {
    let mut valid = Bits::new(sb.main_blocks());
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
    let blocks = segments.div_ceil(SIT_ENTRY_PER_BLOCK);
    let mut first = 0;
    while first < blocks {
        let run = run_of(cp, first, blocks);
        let buf = block::read(image, address(sb, cp, first), run, "SIT")?;
        for nth in 0..run {
            let segno = first
                .saturating_add(nth)
                .saturating_mul(SIT_ENTRY_PER_BLOCK);
            let entries = block::nth(&buf, nth).chunks_exact(ENTRY_SIZE);
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

/// Notes one segment; says how many valid blocks it has.
fn put(valid: &mut Bits, segno: u32, entry: &[u8]) -> u32 {
    let map = entry.get(2..66).unwrap_or_default().as_chunks::<8>().0;
    let first = segno.saturating_mul(BLOCKS_PER_SEG);
    let mut set = 0u32;
    for (word, bytes) in valid.words_from(first).zip(map) {
        *word = u64::from_le_bytes(bytes.map(u8::reverse_bits));
        set = set.saturating_add(word.count_ones());
    }
    set
}

/// How many blocks from `first` on lie one behind the other.
fn run_of(cp: &Checkpoint, first: u32, blocks: u32) -> u32 {
    let bit = |n| test_bit(&cp.sit_bitmap, n);
    let end = blocks.min(first.saturating_add(CHUNK));
    let other = (first..end).find(|&n| bit(n) != bit(first));
    other.unwrap_or(end).saturating_sub(first)
}

/// `current_sit_addr`.
fn address(sb: &SuperBlock, cp: &Checkpoint, block: u32) -> u32 {
    let second = if test_bit(&cp.sit_bitmap, block) {
        sb.sit_blocks()
    } else {
        0
    };
    sb.sit_blkaddr.saturating_add(block).saturating_add(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_block_is_the_highest_bit() {
        let mut entry = vec![0; ENTRY_SIZE];
        entry[2] = 0x81;
        entry[65] = 0x01;
        let mut valid = Bits::new(1024);
        assert_eq!(put(&mut valid, 1, &entry), 3);
        assert_eq!(
            valid.runs().collect::<Vec<_>>(),
            [(512, 1), (519, 1), (1023, 1)]
        );
    }
}
