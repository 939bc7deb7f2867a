// SPDX-License-Identifier: MIT OR Apache-2.0
//! f2fs's numbers, as types of their own.

use crate::fs::number::number;

number! {
    /// The address of a block, counted from the start of the filesystem, or one of the values that stand for no block.
    BlkAddr(u32)
}

impl BlkAddr {
    /// There is no block: `NULL_ADDR`.
    pub const NULL: BlkAddr = BlkAddr(0);
    /// A block is reserved but not yet written: `NEW_ADDR`.
    pub const NEW: BlkAddr = BlkAddr(u32::MAX);
    /// Marks the first address slot of a compressed cluster: `COMPRESS_ADDR`.
    pub const COMPRESS: BlkAddr = BlkAddr(u32::MAX - 1);
}

number! {
    /// The id of a node, to which the NAT assigns a block; 0 stands for none.
    Nid(u32)
}

number! {
    /// The number of an inode, which is the nid of its own node.
    Ino(u32)
}

impl Ino {
    /// Returns the nid of the node that holds the inode.
    pub fn nid(self) -> Nid {
        Nid(self.0)
    }
}
