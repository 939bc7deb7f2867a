// SPDX-License-Identifier: MIT OR Apache-2.0
//! ext4's numbers, as types of their own.

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
    /// The number of an inode; the first is 1, and 0 stands for none.
    Ino(u32)
}

/// The inode that holds the bad blocks.
pub const EXT4_BAD_INO: Ino = Ino(1);
/// The inode of the root directory.
pub const EXT4_ROOT_INO: Ino = Ino(2);
/// The inode that holds the blocks reserved for group descriptors.
pub const EXT4_RESIZE_INO: Ino = Ino(7);
