// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images of FAT, and what other tools report about them.

pub mod images;
pub mod oracles;
pub mod volume;
