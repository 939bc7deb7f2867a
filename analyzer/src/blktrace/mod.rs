// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading blktrace's per-CPU files.

pub mod completion;
