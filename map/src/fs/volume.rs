// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a filesystem lies on its disk: from its own blocks to the map's sectors.

use std::collections::HashMap;

use crate::class::Kind;
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::map::{Extent, Inode, Map};

/// A filesystem's place on its disk. Its unit is the block, or FAT's own sector.
#[derive(Clone, Copy, Debug)]
pub struct Volume {
    start_sector: u64,
    units: u64,
    /// Sectors of 512 bytes in a unit.
    per_unit: u64,
}

impl Volume {
    /// `units` units of `unit_bytes` bytes from `start_sector` on.
    ///
    /// # Errors
    /// The number of its last sector does not fit 64 bits.
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

    /// Sectors of `units` units from `first` on, as far as they are inside; they have no owner yet.
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

    /// Length in sectors.
    pub fn sectors(&self) -> u64 {
        self.units.saturating_mul(self.per_unit)
    }

    /// The map of the whole volume.
    pub fn map(&self, extents: Vec<Extent>, inodes: HashMap<u64, Inode>) -> Map {
        Map::new(self.start_sector, self.sectors(), extents, inodes)
    }
}
