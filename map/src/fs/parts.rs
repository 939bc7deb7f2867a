// SPDX-License-Identifier: MIT OR Apache-2.0
//! The devices that a filesystem lies on, as its superblock tells them.
//!
//! The blocks of an f2fs are numbered through all of its devices. Behind the blocks of an ext4 comes here the whole device of its
//! journal, if that is another one. The map of a filesystem on several devices is built from all of them, read as [one
//! image](super::Joined).

use std::path::PathBuf;

use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::notices::Notices;
use crate::fs::recognise::{Filesystem, recognise};
use crate::fs::{ext4, f2fs};

/// What a filesystem has of one of its devices, from the device's beginning on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The device.
    pub device: PartDevice,
    /// The length in bytes; None for a whole device.
    pub bytes: Option<u64>,
}

/// A device of a filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartDevice {
    /// The one with the superblock.
    First,
    /// The one with this path, as it was named when the f2fs was made.
    Path(PathBuf),
    /// The journal's.
    Journal(ExternalJournal),
}

/// A journal of ext4 that has a device of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalJournal {
    /// Major and minor number that the device had when the filesystem was last mounted.
    pub dev: (u32, u32),
    /// The number that the journal was made with.
    pub uuid: [u8; 16],
}

/// Returns the parts of the filesystem on an image, in the order of its blocks: one for most filesystems, none if no filesystem with
/// a superblock that names devices is recognised.
///
/// # Errors
/// Returns an error if the superblock cannot be read.
pub fn parts(image: &Image) -> Result<Vec<Part>> {
    match recognise(image)? {
        Some(Filesystem::Ext) => ext4::parts(image),
        Some(Filesystem::F2fs) => f2fs::parts(image, &mut Notices::default()),
        _ => Ok(Vec::new()),
    }
}
