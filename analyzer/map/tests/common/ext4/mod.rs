// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images of ext2, ext3 and ext4, and what other tools report about them.

pub mod images;
pub mod oracles;
