// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct ext4_extent_header`, with all extents in the inode: the list of most files.
//!
//! ```text
//! i_block: │ eh_magic, eh_entries, eh_max, eh_depth: u16 each; eh_generation u32 │ up to 4 extents │
//! extent:  │ ee_block u32 │ ee_len u16 │ ee_start_hi u16 │ ee_start_lo u32 │
//! ```

use super::block_list::Run;
use super::numbers::{FileBlock, FsBlock};
use crate::fs::le::{u16_at, u32_at};

const EXT4_EXT_MAGIC: u16 = 0xf30a;
/// Bytes of the header, and of an extent.
const SIZE: usize = 12;
/// There is room for four extents; e2fsprogs lets `eh_max` be two less.
const EH_MAX: std::ops::RangeInclusive<u16> = 2..=4;
/// A longer one is allocated but not written: its length is what is above.
const EXT_INIT_MAX_LEN: u16 = 1 << 15;

/// The blocks of an inode without an extent tree outside of it, in a filesystem that ends before
/// `fs_end`. None where there is such a tree, and where
/// anything at all is not as it should be: debugfs says what can be said then.
pub fn in_inode(i_block: &[u8], fs_end: FsBlock) -> Option<Vec<Run>> {
    let (eh_entries, eh_max) = (u16_at(i_block, 2)?, u16_at(i_block, 4)?);
    let eh_depth = u16_at(i_block, 6)?;
    if u16_at(i_block, 0)? != EXT4_EXT_MAGIC || eh_depth != 0 || !EH_MAX.contains(&eh_max) {
        return None;
    }
    let extents = i_block.chunks_exact(SIZE).skip(1);
    let count = usize::from(eh_entries);
    if eh_entries > eh_max || count > extents.len() {
        return None;
    }
    let mut end = FileBlock(0);
    let mut runs = Vec::with_capacity(count);
    for extent in extents.take(count) {
        let run = run(extent, fs_end).filter(|run| run.logical >= end)?;
        end = run.logical.plus(run.blocks);
        runs.push(run);
    }
    Some(runs)
}

/// One extent; None if it is empty or not inside the filesystem.
fn run(extent: &[u8], fs_end: FsBlock) -> Option<Run> {
    let ee_len = u16_at(extent, 4)?;
    let unwritten = ee_len.checked_sub(EXT_INIT_MAX_LEN).filter(|&len| len > 0);
    let blocks = u64::from(unwritten.unwrap_or(ee_len));
    let high = u64::from(u16_at(extent, 6)?);
    let block = FsBlock(high << 32 | u64::from(u32_at(extent, 8)?));
    let inside = blocks > 0 && blocks <= block.up_to(fs_end);
    inside.then_some(Run {
        logical: FileBlock(u32_at(extent, 0)?.into()),
        block,
        blocks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const END: FsBlock = FsBlock(0x2_0000_0000);

    /// An `i_block` with these extents: `ee_block`, `ee_len`, block.
    fn i_block(extents: &[(u32, u16, u64)]) -> Vec<u8> {
        let mut bytes = vec![0x0a, 0xf3, extents.len() as u8, 0, 4, 0, 0, 0, 0, 0, 0, 0];
        for &(ee_block, ee_len, block) in extents {
            bytes.extend(ee_block.to_le_bytes());
            bytes.extend(ee_len.to_le_bytes());
            bytes.extend(((block >> 32) as u16).to_le_bytes());
            bytes.extend((block as u32).to_le_bytes());
        }
        bytes.resize(60, 0);
        bytes
    }

    fn run(logical: u64, block: u64, blocks: u64) -> Run {
        Run {
            logical: FileBlock(logical),
            block: FsBlock(block),
            blocks,
        }
    }

    #[test]
    fn lengths_and_places_are_the_kernels() {
        let list = [
            (0, 1, 7),
            (5, 32768, 1 << 32),
            (32773, 32769, 90),
            (40000, 3, 95),
        ];
        let runs = [
            run(0, 7, 1),
            run(5, 1 << 32, 32768),
            run(32773, 90, 1),
            run(40000, 95, 3),
        ];
        assert_eq!(in_inode(&i_block(&list), END), Some(runs.into()));
        assert_eq!(in_inode(&i_block(&[]), END), Some(vec![]));
    }

    #[test]
    fn what_is_not_as_it_should_be_is_left_to_debugfs() {
        let sound = i_block(&[(3, 2, 70), (5, 2, 80)]);
        assert!(in_inode(&sound, END).is_some());
        for (at, byte) in [(0, 0x0b), (2, 5), (4, 1), (4, 5), (6, 1), (16, 0), (24, 4)] {
            let mut damaged = sound.clone();
            damaged[at] = byte;
            assert_eq!(in_inode(&damaged, END), None, "byte {at}: {byte}");
        }
        assert_eq!(in_inode(&sound, FsBlock(81)), None);
        assert_eq!(in_inode(&sound[..59], END), in_inode(&sound, END));
        assert_eq!(in_inode(&sound[..30], END), None);
    }

    proptest! {
        #[test]
        fn runs_are_in_order_and_inside(
            noise in prop::collection::vec((0usize..60, any::<u8>()), 0..6), end in 0u64..200,
        ) {
            let mut bytes = i_block(&[(0, 9, 70), (9, 1, 20), (30, 4, 100)]);
            noise.iter().for_each(|&(at, byte)| bytes[at] = byte);
            let runs = in_inode(&bytes, FsBlock(end)).unwrap_or_default();
            prop_assert!(runs.iter().all(|run| run.blocks > 0 && run.block.0 + run.blocks <= end));
            let sorted = runs.windows(2).all(|pair| pair[0].logical.plus(pair[0].blocks) <= pair[1].logical);
            prop_assert!(sorted);
        }
    }
}
