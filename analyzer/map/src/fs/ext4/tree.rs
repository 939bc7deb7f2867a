// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the trees in which inodes list their blocks, one node at a time.

use super::inode::BlockMap;
use super::node::Node;
use super::{extents, indirect};

/// Returns what the `i_block` of an inode leads to, in file order.
///
/// # Errors
/// Returns an error that says what is wrong with the root of an extent tree.
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

/// Returns what the node in `buf` leads to, in file order. `node` is the entry that led there.
///
/// # Errors
/// Returns an error that says what is wrong with a node of an extent tree.
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
