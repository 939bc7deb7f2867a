// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map builders, one folder per filesystem.

use crate::map::Map;

mod bits;
mod error;
pub mod ext4;
pub mod f2fs;
pub mod fat;
mod image;
pub mod jbd2;
mod le;
mod names;
mod notices;
mod number;
mod progress;
mod recognise;
mod seen;
mod volume;

pub use error::{Error, Result};
pub use image::{Image, ReadAt};
pub use names::is_encrypted;
pub use progress::{Progress, Watcher};
use recognise::Filesystem;

/// Builds the map of the filesystem on an image; the image begins at `start_sector` of its disk, 512 bytes each.
///
/// # Errors
/// Returns an error if no filesystem is recognised, or if it cannot be read.
pub fn build(image: &Image, start_sector: u64) -> Result<Map> {
    build_with(image, start_sector, &|_| {})
}

/// Builds the map as [`build`] does, and reports progress to `watcher`: a large filesystem takes seconds.
///
/// # Errors
/// Returns an error in the same cases as [`build`].
pub fn build_with(image: &Image, start_sector: u64, watcher: &Watcher) -> Result<Map> {
    match recognise::recognise(image)? {
        Some(Filesystem::Ext) => ext4::build_with(image, start_sector, watcher),
        Some(Filesystem::F2fs) => f2fs::build_with(image, start_sector, watcher),
        Some(Filesystem::Fat) => fat::build_with(image, start_sector, watcher),
        Some(Filesystem::ExFat) => Err(image.unsupported(
            "boot record",
            "exFAT: ext4, ext3, ext2, f2fs and FAT can be mapped",
        )),
        None => Err(Error::Unrecognised {
            path: image.path().to_owned(),
        }),
    }
}
