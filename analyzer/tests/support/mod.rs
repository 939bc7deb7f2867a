// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared by the tests and the benchmark of the blktrace reader.
#![allow(dead_code)] // each test binary uses its own share

mod io;
pub mod oracle;
pub mod synthetic;

use std::path::{Path, PathBuf};

/// The real traces, by basename; `data/make.sh` records them.
pub const REAL: [&str; 3] = ["ext4-fsync", "ext4-direct", "ext4-sqlite"];

pub fn real(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}
