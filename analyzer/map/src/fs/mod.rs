// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map builders, one folder per filesystem.

use crate::map::Map;

mod bits;
mod container;
mod crc;
mod error;
pub mod ext4;
pub mod f2fs;
pub mod fat;
mod identity;
mod image;
pub mod jbd2;
mod joined;
mod le;
mod magic;
mod names;
mod notices;
mod number;
mod part;
mod patches;
mod progress;
mod read_at;
mod recognise;
mod seen;
mod state;
mod volume;

pub use container::{Opened, Wanted, open};
pub use error::{Error, Result};
pub use identity::{Identity, identity, length};
pub use image::{Image, ReadAt};
pub use joined::Joined;
pub use names::is_encrypted;
use notices::Notices;
pub use part::{DevicePart, ExternalJournal, PartDevice};
pub use progress::{Progress, Watcher};
use recognise::Filesystem;
pub use state::{By, How, State};

/// Builds the map of the filesystem on an image; the image begins at `start_sector` of its disk, 512 bytes each.
///
/// # Errors
/// Returns an error if no filesystem is recognised, or if it cannot be read.
pub fn build(image: &Image, start_sector: u64) -> Result<Map> {
    build_with(image, start_sector, &|_| {})
}

/// Builds the map as [`build`] does, and reports progress to `watcher`: a large filesystem takes seconds.
pub fn build_with(image: &Image, start_sector: u64, watcher: &Watcher) -> Result<Map> {
    build_by(How::default(), image, start_sector, watcher)
}

/// Builds the map as [`build_with`] does, of the state and with the lists of blocks that `how` says.
///
/// # Errors
/// Returns an error in the same cases as [`build`], and if debugfs is to list the blocks but is missing or does not read this
/// filesystem.
pub fn build_by(
    how: impl Into<How>,
    image: &Image,
    start_sector: u64,
    watcher: &Watcher,
) -> Result<Map> {
    let how = how.into();
    match (recognise::recognise(image)?, how.by) {
        (Some(Filesystem::Ext), _) => ext4::build_by(how, image, start_sector, watcher),
        (Some(_), By::Debugfs) => {
            Err(image.unsupported("first blocks", "debugfs reads ext4, ext3 and ext2 only"))
        }
        (Some(Filesystem::F2fs), By::Walk) => {
            f2fs::build_with(how.state, image, start_sector, watcher)
        }
        (Some(Filesystem::Fat), By::Walk) => fat::build_with(image, start_sector, watcher),
        (Some(Filesystem::ExFat), By::Walk) => Err(image.unsupported(
            "boot record",
            "exFAT: ext4, ext3, ext2, f2fs and FAT can be mapped",
        )),
        (None, _) => Err(Error::Unrecognised {
            path: image.path().to_owned(),
            what: magic::what(image),
        }),
    }
}

/// Returns the parts of the filesystem on an image, in the order of its blocks: one for most filesystems, none if no filesystem with
/// a superblock that names devices is recognised.
pub fn parts(image: &Image) -> Result<Vec<DevicePart>> {
    match recognise::recognise(image)? {
        Some(Filesystem::Ext) => ext4::parts(image),
        Some(Filesystem::F2fs) => f2fs::parts(image, &mut Notices::default()),
        _ => Ok(Vec::new()),
    }
}
