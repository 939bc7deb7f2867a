// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a saved trace to tables: events → attribution → tables → export.

pub mod attribute;
pub mod blktrace;
pub mod class;
#[cfg(feature = "analyze")]
pub mod export;
pub mod fs;
pub mod map;
#[cfg(feature = "analyze")]
pub mod tables;
pub mod text;
