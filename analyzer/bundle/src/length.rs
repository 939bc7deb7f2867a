// SPDX-License-Identifier: MIT OR Apache-2.0
//! Conversion of lengths in memory to lengths in files.

/// Returns the same number as a u64; no platform has a larger usize.
pub(crate) fn as_u64(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}
