// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a recording needs that is cut into segments: at a cut, what came of requests that are under way is told once
//! more in the next segment, so that each can be read alone.
//!
//! A source keeps what came [`Recent`]ly. [`Ends`] says which of it belongs to requests whose completion came too; the
//! rest is repeated. Completions never are: every byte is in one segment.

mod ends;
mod recent;

pub(crate) use ends::{Ends, Part};
pub(crate) use recent::Recent;
