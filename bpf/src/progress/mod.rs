// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a terminal shows of a capture that goes on. On stderr; nothing if that is no terminal.

mod packing;
mod recording;

pub(crate) use packing::Packing;
pub(crate) use recording::Recording;
