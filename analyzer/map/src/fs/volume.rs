// SPDX-License-Identifier: MIT OR Apache-2.0
//! The place of a filesystem on its disk: converts its own blocks to the map's sectors.

use std::collections::HashMap;

use crate::class::Kind;
use crate::extent::Extent;
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::map::{Inode, Map};

/// A filesystem's place on its disk. Its unit is the block, or for FAT the filesystem's own sector.
#[derive(Clone, Copy, Debug)]
pub struct Volume {
    start_sector: u64,
    units: u64,
    /// Number of 512-byte sectors in a unit.
    per_unit: u64,
}

impl Volume {
    /// Describes a filesystem of `units` units of `unit_bytes` bytes that begins at `start_sector`.
    ///
    /// # Errors
    /// Returns an error if the number of the last sector does not fit into 64 bits.
    pub fn new(image: &Image, start_sector: u64, units: u64, unit_bytes: u32) -> Result<Volume> {
        let per_unit = u64::from(unit_bytes >> 9);
        let sectors = units.checked_mul(per_unit);
        if sectors.and_then(|n| n.checked_add(start_sector)).is_none() {
            return Err(image.unsupported("start sector", format!("{start_sector} is too large")));
        }
        Ok(Volume {
            start_sector,
            units,
            per_unit,
        })
    }

    /// Returns an extent for `units` units from `first` on, without an owner; units outside the filesystem are cut off
    /// later.
    pub fn extent(&self, first: impl Into<u64>, units: impl Into<u64>, kind: Kind) -> Extent {
        let sectors = |units: u64| units.saturating_mul(self.per_unit);
        Extent {
            sector: sectors(first.into()).saturating_add(self.start_sector),
            sectors: sectors(units.into()),
            kind,
            inode: 0,
            file_offset: None,
        }
    }

    /// Returns the length in sectors.
    pub fn sectors(&self) -> u64 {
        self.units.saturating_mul(self.per_unit)
    }

    /// Builds the map of the whole volume.
    pub fn map(&self, extents: Vec<Extent>, inodes: HashMap<u64, Inode>) -> Map {
        let map = Map::new(self.start_sector, self.sectors(), extents, inodes);
        map.with_block_size(self.per_unit.saturating_mul(512))
    }
}
