// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images of f2fs, and what other tools report about them.

pub mod edit;
pub mod images;
pub mod oracles;
