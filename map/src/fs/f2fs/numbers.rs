// SPDX-License-Identifier: MIT OR Apache-2.0
//! The numbers that f2fs counts with.

use crate::fs::number::number;

number! {
    /// The address of a block, counted from the start of the filesystem; or one of the words that
    /// stand for none.
    BlkAddr(u32)
}

impl BlkAddr {
    /// No block: `NULL_ADDR`.
    pub const NULL: BlkAddr = BlkAddr(0);
    /// Reserved, but not written yet: `NEW_ADDR`.
    pub const NEW: BlkAddr = BlkAddr(u32::MAX);
    /// The first address of a compressed cluster: `COMPRESS_ADDR`.
    pub const COMPRESS: BlkAddr = BlkAddr(u32::MAX - 1);
}

number! {
    /// A node, which the NAT gives a block; 0 stands for none.
    Nid(u32)
}

number! {
    /// An inode: the nid of its own node.
    Ino(u32)
}

impl Ino {
    /// The node that holds the inode.
    pub fn nid(self) -> Nid {
        Nid(self.0)
    }
}
