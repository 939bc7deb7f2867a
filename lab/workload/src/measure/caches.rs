// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dropping the kernel's caches, so that a run begins without cached data.

use std::io;

use serde::{Deserialize, Serialize};

/// The choice whether the page cache and the caches of names and inodes are dropped before the measured phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Caches {
    /// The caches stay.
    #[default]
    Keep,
    /// The caches are dropped, if the caller may do that.
    Drop,
}

impl From<bool> for Caches {
    /// Returns `Drop` for true.
    fn from(is_dropped: bool) -> Self {
        match is_dropped {
            true => Self::Drop,
            false => Self::Keep,
        }
    }
}

/// Drops the clean entries of these caches, for the whole machine.
///
/// # Errors
/// Returns an error unless the caller is root.
pub fn drop_caches() -> io::Result<()> {
    std::fs::write("/proc/sys/vm/drop_caches", "3")
}
