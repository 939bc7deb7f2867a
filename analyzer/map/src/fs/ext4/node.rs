// SPDX-License-Identifier: MIT OR Apache-2.0
//! An entry of a node of the trees in which inodes list their blocks.

use super::numbers::{FileBlock, FsBlock};

/// An entry of a node: the node or the contents to which it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The first block of the file that it covers.
    pub logical: FileBlock,
    /// The first block of the contents, or the block of the next node.
    pub block: FsBlock,
    /// The number of blocks; 1 for a node.
    pub blocks: u64,
    /// Number of levels from there to the contents; 0 for the contents themselves.
    pub height: u16,
}
