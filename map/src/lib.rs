// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a sector belongs to: the map of a filesystem, and the walkers that build it.
#![deny(unsafe_code)]
// Images come from anywhere: what they say is checked before it is used.
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::as_conversions,
        clippy::indexing_slicing
    )
)]

pub mod class;
pub mod fs;
mod map;
pub mod stores;
mod through;

pub use map::{Extent, Inode, Map, Name};
pub use through::Piece;
