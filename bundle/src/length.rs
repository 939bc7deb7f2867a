// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lengths in memory as lengths in files.

/// The same number; a usize has no more than 64 bits anywhere.
pub(crate) fn as_u64(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}
