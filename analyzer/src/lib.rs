// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a saved trace to tables: events → attribution → tables.

pub mod blktrace;
pub mod class;
pub mod fs;
pub mod map;
