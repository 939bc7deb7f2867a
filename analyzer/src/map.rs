// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sector range → owner, of one filesystem at one moment.

use std::collections::HashMap;

use crate::class::{Kind, Provenance};

/// Consecutive sectors with one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First sector, 512 bytes, from the start of the whole disk.
    pub sector: u64,
    /// Length in sectors, at least 1.
    pub sectors: u64,
    /// What the blocks hold.
    pub kind: Kind,
    /// Owning inode, 0 where there is none (layout metadata, free space).
    pub inode: u64,
    /// Offset in the owning file of the first byte, for kinds that are a file's contents.
    pub file_offset: Option<u64>,
}

/// What is known of an inode beside its blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inode {
    /// `i_generation`: tells a reused inode number from the file the probe saw.
    pub generation: u32,
    /// Every path that leads to it from the filesystem's root, raw bytes, starting with `/`.
    /// Several for hard links, none for an orphan.
    pub paths: Vec<Vec<u8>>,
}

/// The map. `extents` are sorted by sector, disjoint, and cover the filesystem.
#[derive(Clone, Debug, Default)]
pub struct Map {
    extents: Vec<Extent>,
    inodes: HashMap<u64, Inode>,
}

impl Map {
    /// Takes extents in any order, sorts them, and fills the holes of
    /// `start..start + sectors` with `free`. Where two extents overlap, the
    /// one that comes first in `extents` keeps the sectors.
    pub fn new(start: u64, sectors: u64, extents: Vec<Extent>, inodes: HashMap<u64, Inode>) -> Map {
        let _ = (start, sectors);
        // Filled in by the map builder's author.
        Map { extents, inodes }
    }

    /// All extents in order.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// An inode by number.
    pub fn inode(&self, number: u64) -> Option<&Inode> {
        self.inodes.get(&number)
    }

    /// The pieces of `sector..sector + sectors`, in order, without holes: what
    /// lies outside the filesystem comes back as `Kind::Unmapped`. Each piece is
    /// cut to the range asked for, its `file_offset` moved along.
    pub fn pieces(&self, sector: u64, sectors: u64) -> impl Iterator<Item = Extent> + '_ {
        let _ = (sector, sectors);
        std::iter::empty()
    }

    /// How a lookup that ended at this extent knows its owner.
    pub fn provenance(extent: &Extent) -> Provenance {
        match extent.kind {
            Kind::Unmapped | Kind::Free => Provenance::Unknown,
            _ if extent.inode != 0 => Provenance::Snapshot,
            _ => Provenance::Layout,
        }
    }
}
