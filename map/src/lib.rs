// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a sector belongs to: the map of a filesystem, and the walkers that build it.

pub mod class;
pub mod fs;
mod map;

pub use map::{Extent, Inode, Map, Name};
