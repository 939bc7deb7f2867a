// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a saved trace to tables: events → attribution → tables → export.
#![forbid(unsafe_code)]

pub mod attribute;
pub mod blktrace;
#[cfg(feature = "analyze")]
pub mod export;
#[cfg(feature = "analyze")]
pub mod tables;
pub mod text;
