// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a saved trace to tables: events → attribution → facts → tables → export.
#![cfg_attr(feature = "analyze", doc = "\n[`analysis`] is the front door.")]
#![forbid(unsafe_code)]

#[cfg(feature = "analyze")]
pub mod analysis;
pub mod attribute;
pub mod blktrace;
#[cfg(feature = "analyze")]
pub mod budget;
pub mod causes;
#[cfg(feature = "analyze")]
pub mod experiment;
#[cfg(feature = "analyze")]
pub mod export;
#[cfg(feature = "analyze")]
pub mod facts;
pub mod live;
pub mod pipeline;
pub mod recording;
#[cfg(feature = "analyze")]
pub mod report;
#[cfg(feature = "analyze")]
pub mod tables;
mod tally;
pub mod text;
#[cfg(feature = "analyze")]
pub mod transactions;
