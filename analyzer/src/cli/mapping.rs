// SPDX-License-Identifier: MIT OR Apache-2.0
//! From an image or a device to the map of the filesystem on it.

use std::path::Path;

use mostrace_map::Map;
use mostrace_map::fs::{self, Image};

/// Builds the map of an image or a device that begins at `start_sector` of its disk.
pub fn build(image: &Path, start_sector: u64) -> anyhow::Result<Map> {
    Ok(fs::build(&Image::open(image)?, start_sector)?)
}

/// Whether an error means that the filesystem is sound but that no map of it can be made.
pub fn is_unsupported(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(fs::Error::Unsupported { .. }))
}
