// SPDX-License-Identifier: MIT OR Apache-2.0
//! The numbers that ext4 counts with.

use crate::fs::number::number;

number! {
    /// A block of the filesystem.
    FsBlock(u64)
}

number! {
    /// A block of a file, counted from its beginning.
    FileBlock(u64)
}

number! {
    /// An inode, the first is 1; 0 stands for none.
    Ino(u32)
}

/// Holds the blocks that cannot be used.
pub const EXT4_BAD_INO: Ino = Ino(1);
/// The root directory.
pub const EXT4_ROOT_INO: Ino = Ino(2);
/// Holds the blocks reserved for group descriptors.
pub const EXT4_RESIZE_INO: Ino = Ino(7);
