// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct ext4_extent_header` and what follows it (fs/ext4/ext4_extents.h).
//!
//! ```text
//! node:    │ eh_magic, eh_entries, eh_max, eh_depth: u16 each; eh_generation u32 │ entries of 12 bytes │ et_checksum u32 │
//! index:   │ ei_block u32 │ ei_leaf_lo u32 │ ei_leaf_hi u16 │ u16 │
//! extent:  │ ee_block u32 │ ee_len u16 │ ee_start_hi u16 │ ee_start_lo u32 │
//! ```
//! The root lies in the inode and has no checksum of its own.

use super::node::Node;
use super::numbers::{FileBlock, FsBlock};
use crate::fs::le::{u16_at, u32_at};

const EXT4_EXT_MAGIC: u16 = 0xf30a;
/// The kernel makes no higher tree.
const EXT4_MAX_EXTENT_DEPTH: u16 = 5;
/// Length in bytes of the header, and of an entry.
const SIZE: usize = 12;
/// An extent with a larger length is allocated but not written; its real length is the excess over this value.
const EXT_INIT_MAX_LEN: u16 = 1 << 15;

/// Returns the nodes or the contents to which an inode's root leads.
///
/// # Errors
/// Returns an error that says what is wrong with the root.
pub fn root(i_block: &[u8]) -> Result<Vec<Node>, &'static str> {
    let depth = u16_at(i_block, 6).unwrap_or(0);
    if depth > EXT4_MAX_EXTENT_DEPTH {
        return Err("is higher than the kernel allows");
    }
    node(i_block, depth)
}

/// Returns what a node leads to; the node is `height` levels above the contents.
///
/// # Errors
/// Returns an error that says what is wrong with the node, by the rules of `__ext4_ext_check` in fs/ext4/extents.c.
pub fn node(node: &[u8], height: u16) -> Result<Vec<Node>, &'static str> {
    let field = |at| u16_at(node, at).unwrap_or(0);
    let (eh_entries, eh_max, eh_depth) = (field(2), field(4), field(6));
    let room = (node.len() / SIZE).saturating_sub(1);
    if field(0) != EXT4_EXT_MAGIC {
        Err("has no magic number of an extent node")
    } else if eh_depth != height {
        Err("is of another height than its place in the tree")
    } else if eh_max == 0 || usize::from(eh_max) > room {
        Err("has no room for so many extents")
    } else if eh_entries > eh_max {
        Err("has more extents than room")
    } else {
        entries(node, eh_entries, height).ok_or("has extents that are empty or out of order")
    }
}

fn entries(node: &[u8], eh_entries: u16, height: u16) -> Option<Vec<Node>> {
    let entries = node.chunks_exact(SIZE).skip(1).take(eh_entries.into());
    let mut nodes = Vec::with_capacity(eh_entries.into());
    let mut end = FileBlock(0);
    for bytes in entries {
        let entry = if height == 0 {
            extent(bytes)?
        } else {
            index(bytes, height)?
        };
        let is_in_order = entry.logical >= end && entry.blocks > 0;
        end = entry.logical.plus(entry.blocks);
        nodes.push(is_in_order.then_some(entry)?);
    }
    Some(nodes)
}

/// Returns the byte offset of the checksum of a node in a block, which is behind the room for entries.
pub fn tail(node: &[u8]) -> usize {
    let eh_max = usize::from(u16_at(node, 4).unwrap_or(0));
    eh_max.saturating_add(1).saturating_mul(SIZE)
}

fn index(entry: &[u8], height: u16) -> Option<Node> {
    Some(Node {
        logical: FileBlock(u32_at(entry, 0)?.into()),
        block: joined(u32_at(entry, 4)?, u16_at(entry, 8)?),
        blocks: 1,
        height,
    })
}

/// Parses an extent.
pub fn extent(entry: &[u8]) -> Option<Node> {
    let ee_len = u16_at(entry, 4)?;
    let unwritten = ee_len.checked_sub(EXT_INIT_MAX_LEN).filter(|&len| len > 0);
    Some(Node {
        logical: FileBlock(u32_at(entry, 0)?.into()),
        block: joined(u32_at(entry, 8)?, u16_at(entry, 6)?),
        blocks: unwritten.unwrap_or(ee_len).into(),
        height: 0,
    })
}

fn joined(low: u32, high: u16) -> FsBlock {
    FsBlock(u64::from(high) << 32 | u64::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(entries: usize, depth: u8) -> Vec<u8> {
        vec![0x0a, 0xf3, entries as u8, 0, 4, 0, depth, 0, 0, 0, 0, 0]
    }

    /// Builds a leaf with these extents: `ee_block`, `ee_len`, block.
    fn leaf(extents: &[(u32, u16, u64)]) -> Vec<u8> {
        let mut bytes = header(extents.len(), 0);
        for &(ee_block, ee_len, block) in extents {
            bytes.extend(ee_block.to_le_bytes());
            bytes.extend(ee_len.to_le_bytes());
            bytes.extend(((block >> 32) as u16).to_le_bytes());
            bytes.extend((block as u32).to_le_bytes());
        }
        bytes.resize(60, 0);
        bytes
    }

    fn of(logical: u64, block: u64, blocks: u64, height: u16) -> Node {
        Node {
            logical: FileBlock(logical),
            block: FsBlock(block),
            blocks,
            height,
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
        let nodes = [
            of(0, 7, 1, 0),
            of(5, 1 << 32, 32768, 0),
            of(32773, 90, 1, 0),
            of(40000, 95, 3, 0),
        ];
        assert_eq!(root(&leaf(&list)), Ok(nodes.into()));
        assert_eq!(root(&leaf(&[])), Ok(vec![]));
    }

    #[test]
    fn an_index_leads_to_nodes() {
        let mut index = header(1, 2);
        index.extend([8, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0]);
        index.resize(60, 0);
        assert_eq!(root(&index), Ok(vec![of(8, 1 << 32 | 7, 1, 2)]));
        assert_eq!(node(&index, 2), root(&index));
        assert!(node(&index, 1).is_err());
    }

    #[test]
    fn what_is_not_as_it_should_be_is_an_error() {
        let sound = leaf(&[(3, 2, 70), (5, 2, 80)]);
        assert!(root(&sound).is_ok());
        for (at, byte) in [(0, 0x0b), (2, 5), (4, 1), (4, 5), (6, 9), (16, 0), (24, 4)] {
            let mut damaged = sound.clone();
            damaged[at] = byte;
            assert!(root(&damaged).is_err(), "byte {at}: {byte}");
        }
        assert!(root(&sound[..30]).is_err());
        assert_eq!(tail(&sound), 60);
    }

    proptest! {
        #[test]
        fn entries_are_in_order(noise in prop::collection::vec((0usize..60, any::<u8>()), 0..6)) {
            let mut bytes = leaf(&[(0, 9, 70), (9, 1, 20), (30, 4, 100)]);
            noise.iter().for_each(|&(at, byte)| bytes[at] = byte);
            let nodes = root(&bytes).unwrap_or_default();
            prop_assert!(nodes.iter().all(|node| node.blocks > 0 && node.height <= EXT4_MAX_EXTENT_DEPTH));
            let sorted = nodes.windows(2).all(|pair| pair[0].logical.plus(pair[0].blocks) <= pair[1].logical);
            prop_assert!(sorted);
        }
    }
}
