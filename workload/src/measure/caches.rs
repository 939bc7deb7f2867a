// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's caches, dropped so that a run begins with none.

use std::io;

use serde::{Deserialize, Serialize};

/// Whether the page cache, and that of names and inodes, is dropped before what is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Caches {
    /// They stay.
    #[default]
    Keep,
    /// They are dropped, where that is allowed.
    Drop,
}

/// Drops what is clean of them; of the whole machine.
///
/// # Errors
/// Only root may.
pub fn drop_caches() -> io::Result<()> {
    std::fs::write("/proc/sys/vm/drop_caches", "3")
}
