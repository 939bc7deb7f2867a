// SPDX-License-Identifier: MIT OR Apache-2.0
//! Direct and indirect blocks, with which ext2 and ext3 list the blocks of a file.
//!
//! ```text
//! i_block: │ 12 direct blocks │ indirect │ double indirect │ triple indirect │    u32 each, 0 for a hole
//! node:    │ block u32 │ block u32 │ …    as many as fit in a block
//! ```

use super::node::Node;
use super::numbers::{FileBlock, FsBlock};
use crate::fs::le::u32_at;

const EXT4_NDIR_BLOCKS: u64 = 12;
/// Length of an entry in bytes.
const ENTRY: usize = 4;

/// Returns the nodes and contents to which an inode leads, in a filesystem with blocks of `block_size` bytes.
pub fn root(i_block: &[u8], block_size: u32) -> Vec<Node> {
    let entries = u64::from(block_size >> 2);
    let mut at = FileBlock(0);
    let mut nodes = Vec::new();
    for (nth, bytes) in (0u64..).zip(i_block.chunks_exact(ENTRY)) {
        let height = nth.saturating_sub(EXT4_NDIR_BLOCKS.saturating_sub(1));
        let height = u16::try_from(height).unwrap_or(u16::MAX);
        nodes.extend(entry(bytes, at, height));
        at = at.plus(entries.saturating_pow(height.into()));
    }
    nodes
}

/// Returns what an indirect block leads to. Its first entry leads to the block `logical` of the file; each entry stands `height`
/// levels above the contents.
pub fn node(buf: &[u8], logical: FileBlock, height: u16) -> Vec<Node> {
    let entries = u64::try_from(buf.len() / ENTRY).unwrap_or(u64::MAX);
    let step = entries.saturating_pow(height.into());
    (0u64..)
        .zip(buf.chunks_exact(ENTRY))
        .filter_map(|(nth, bytes)| entry(bytes, logical.plus(nth.saturating_mul(step)), height))
        .collect()
}

fn entry(bytes: &[u8], logical: FileBlock, height: u16) -> Option<Node> {
    let block = u32_at(bytes, 0).filter(|&block| block != 0)?;
    Some(Node {
        logical,
        block: FsBlock(block.into()),
        blocks: 1,
        height,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(logical: u64, block: u64, height: u16) -> Node {
        Node {
            logical: FileBlock(logical),
            block: FsBlock(block),
            blocks: 1,
            height,
        }
    }

    #[test]
    fn entries_stand_where_ext2_puts_them() {
        let mut i_block = [0u8; 60];
        (i_block[0], i_block[44]) = (5, 6);
        (i_block[48], i_block[52], i_block[56]) = (7, 8, 9);
        // 256 entries in a block: 12 direct, then 256, then 65,536.
        let all = [
            of(0, 5, 0),
            of(11, 6, 0),
            of(12, 7, 1),
            of(268, 8, 2),
            of(65_804, 9, 3),
        ];
        assert_eq!(root(&i_block, 1024), all);
        let mut block = [0u8; 1024];
        (block[4], block[1020]) = (3, 4);
        let all = [of(268 + 256, 3, 1), of(268 + 255 * 256, 4, 1)];
        assert_eq!(node(&block, FileBlock(268), 1), all);
    }
}
