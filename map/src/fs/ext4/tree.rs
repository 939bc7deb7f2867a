// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trees that inodes keep their blocks in, a node at a time: extents, and indirect blocks.
//!
//! ```text
//! extent node: │ eh_magic, eh_entries, eh_max, eh_depth: u16 each; eh_generation u32 │ entries of 12 bytes │
//! index:       │ ei_block u32 │ ei_leaf_lo u32 │ ei_leaf_hi u16 │ u16 │
//! extent:      │ ee_block u32 │ ee_len u16 │ ee_start_hi u16 │ ee_start_lo u32 │
//! indirect:    │ block u32 │ block u32 │ …    in the inode 12 blocks, and one of each of three heights
//! ```

use super::numbers::FsBlock;
use crate::fs::le::{u16_at, u32_at};

const EXT4_EXT_MAGIC: u16 = 0xf30a;
/// No tree of the kernel's is higher.
const EXT4_MAX_EXTENT_DEPTH: u16 = 5;
const ENTRY: usize = 12;
/// A longer extent is allocated but not written: its length is what is above.
const EXT_INIT_MAX_LEN: u16 = 1 << 15;
const EXT4_NDIR_BLOCKS: usize = 12;

/// What a node leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    pub block: FsBlock,
    /// 1 where it is a node again.
    pub blocks: u64,
    /// Levels of nodes from this one to the contents: 0 are contents.
    pub height: u16,
}

/// What an inode's `i_block` leads to.
pub fn root(i_block: &[u8], extents: bool) -> Vec<Node> {
    if extents {
        let height = u16_at(i_block, 6).unwrap_or(0);
        return extent_node(i_block, height.min(EXT4_MAX_EXTENT_DEPTH));
    }
    let (direct, upper) = i_block.split_at(i_block.len().min(EXT4_NDIR_BLOCKS.saturating_mul(4)));
    let mut below = indirect_node(direct, 0);
    for (height, block) in (1u16..).zip(upper.chunks_exact(4)) {
        below.extend(indirect_node(block, height));
    }
    below
}

/// What an extent node leads to that is to stand `height` above the contents; nothing where it says something else.
pub fn extent_node(node: &[u8], height: u16) -> Vec<Node> {
    let depth = u16_at(node, 6);
    if u16_at(node, 0) != Some(EXT4_EXT_MAGIC) || depth != Some(height) {
        return Vec::new();
    }
    let entries = node.chunks_exact(ENTRY).skip(1);
    entries
        .take(u16_at(node, 2).unwrap_or(0).into())
        .filter_map(|entry| {
            if height == 0 {
                extent(entry)
            } else {
                index(entry, height)
            }
        })
        .collect()
}

/// Whether it is a node of extents, or leads to such, as far as libext2fs looks at it.
pub fn is_extent_node(node: &[u8]) -> bool {
    u16_at(node, 0) == Some(EXT4_EXT_MAGIC)
}

/// The blocks that a node of extents leads to if its entries lead to nodes.
pub fn indices(node: &[u8]) -> impl Iterator<Item = FsBlock> + '_ {
    let entries = usize::from(u16_at(node, 2).unwrap_or(0));
    let entries = node.chunks_exact(ENTRY).skip(1).take(entries);
    entries.filter_map(|entry| Some(index(entry, 0)?.block))
}

fn index(entry: &[u8], height: u16) -> Option<Node> {
    Some(Node {
        block: joined(u32_at(entry, 4)?, u16_at(entry, 8)?),
        blocks: 1,
        height,
    })
}

fn extent(entry: &[u8]) -> Option<Node> {
    let ee_len = u16_at(entry, 4)?;
    let unwritten = ee_len.checked_sub(EXT_INIT_MAX_LEN).filter(|&len| len > 0);
    Some(Node {
        block: joined(u32_at(entry, 8)?, u16_at(entry, 6)?),
        blocks: unwritten.unwrap_or(ee_len).into(),
        height: 0,
    })
}

fn joined(low: u32, high: u16) -> FsBlock {
    FsBlock(u64::from(high) << 32 | u64::from(low))
}

/// What an indirect block leads to, of which each is `height` above the contents.
pub fn indirect_node(node: &[u8], height: u16) -> Vec<Node> {
    let blocks = node.chunks_exact(4).filter_map(|bytes| u32_at(bytes, 0));
    blocks
        .filter(|&block| block != 0)
        .map(|block| Node {
            block: FsBlock(block.into()),
            blocks: 1,
            height,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn node(block: u64, blocks: u64, height: u16) -> Node {
        Node {
            block: FsBlock(block),
            blocks,
            height,
        }
    }

    #[test]
    fn an_index_leads_to_nodes_and_an_extent_to_contents() {
        let header =
            |entries: u8, depth: u8| vec![0x0a, 0xf3, entries, 0, 4, 0, depth, 0, 0, 0, 0, 0];
        let mut index = header(1, 2);
        index.extend([0, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(root(&index, true), [node(1 << 32 | 7, 1, 2)]);
        let mut leaf = header(2, 0);
        leaf.extend([0, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0]);
        // Allocated, not written: 5 blocks.
        leaf.extend([3, 0, 0, 0, 5, 0x80, 0, 0, 20, 0, 0, 0]);
        leaf.resize(60, 0);
        assert_eq!(extent_node(&leaf, 0), [node(9, 3, 0), node(20, 5, 0)]);
        // A node that says another height than its parent.
        assert_eq!(extent_node(&leaf, 1), []);
    }

    #[test]
    fn indirect_blocks_have_the_height_of_their_place() {
        let mut i_block = [0u8; 60];
        (i_block[0], i_block[44], i_block[48], i_block[56]) = (5, 6, 7, 8);
        let all = [node(5, 1, 0), node(6, 1, 0), node(7, 1, 1), node(8, 1, 3)];
        assert_eq!(root(&i_block, false), all);
    }

    proptest! {
        #[test]
        fn noise_is_no_higher_than_the_kernels(noise in prop::collection::vec(any::<u8>(), 0..200), extents: bool) {
            let mut bytes = vec![0x0a, 0xf3];
            bytes.extend(noise);
            for node in root(&bytes, extents) {
                prop_assert!(!extents || node.height <= EXT4_MAX_EXTENT_DEPTH);
            }
        }
    }
}
