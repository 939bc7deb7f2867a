// SPDX-License-Identifier: MIT OR Apache-2.0
//! The devices that a filesystem lies on, as its superblock tells them.
//!
//! The blocks of an f2fs are numbered through all of its devices. The blocks of an ext4 are followed by the whole device of its
//! journal, if that is another one. The map of a filesystem on several devices is built from all of them, read as [one
//! image](super::Joined).

use std::path::PathBuf;

/// What a filesystem has of one of its devices, from the device's beginning on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DevicePart {
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
