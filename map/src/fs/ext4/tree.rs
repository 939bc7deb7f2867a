// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trees that inodes keep their blocks in, a node at a time.

use super::inode::BlockMap;
use super::numbers::{FileBlock, FsBlock};
use super::{extents, indirect};

/// What an entry of a node leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The first block of the file that lies there.
    pub logical: FileBlock,
    /// The first block of the contents, or the one that holds the next node.
    pub block: FsBlock,
    /// The number of blocks; 1 where it is a node.
    pub blocks: u64,
    /// Levels of nodes from there to the contents; 0 stands for the contents themselves.
    pub height: u16,
}

/// What `i_block` of an inode leads to, in the order of the file.
///
/// # Errors
/// Says what is wrong with the root of an extent tree.
pub fn root(
    block_map: BlockMap,
    i_block: &[u8],
    block_size: u32,
) -> Result<Vec<Node>, &'static str> {
    match block_map {
        BlockMap::None => Ok(Vec::new()),
        BlockMap::Extents => extents::root(i_block),
        BlockMap::Indirect => Ok(indirect::root(i_block, block_size)),
    }
}

/// What the node in `buf` leads to, in the order of the file. `node` is the entry that led there.
///
/// # Errors
/// Says what is wrong with a node of an extent tree.
pub fn below(block_map: BlockMap, node: &Node, buf: &[u8]) -> Result<Vec<Node>, &'static str> {
    let Some(height) = node.height.checked_sub(1) else {
        return Ok(Vec::new());
    };
    match block_map {
        BlockMap::None => Ok(Vec::new()),
        BlockMap::Extents => extents::node(buf, height),
        BlockMap::Indirect => Ok(indirect::node(buf, node.logical, height)),
    }
}
