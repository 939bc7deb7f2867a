// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map of a filesystem on a mapped device (dm), in the sectors of the disk below.

use crate::map::{Extent, Map};

/// A run of sectors of a mapped device, and where it lies on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First sector on the mapped device.
    pub upper: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// First sector on the disk.
    pub lower: u64,
}

impl Piece {
    /// One past its last sector on the mapped device.
    fn end(&self) -> u64 {
        self.upper.saturating_add(self.sectors)
    }

    /// Where a sector of the mapped device lies on the disk.
    fn down(&self, sector: u64) -> u64 {
        let skipped = sector.saturating_sub(self.upper);
        self.lower.saturating_add(skipped)
    }

    /// The part of an extent that lies in it, on the disk.
    fn extent(&self, extent: &Extent) -> Option<Extent> {
        let meets = extent.sector < self.end() && self.upper < extent.end();
        let cut = meets.then(|| extent.cut(self.upper, self.end()))?;
        Some(Extent {
            sector: self.down(cut.sector),
            ..cut
        })
    }
}

/// Where a sector of the mapped device lies on the disk; None if it lies on another one.
pub(crate) fn down(pieces: &[Piece], sector: u64) -> Option<u64> {
    let piece = pieces
        .iter()
        .find(|piece| (piece.upper..piece.end()).contains(&sector))?;
    Some(piece.down(sector))
}

/// The extents of a mapped device on the disk, sorted and disjoint. What no piece has is left out; of two
/// pieces on the same place of the disk, which the kernel does not make, the one that begins first has it.
pub(crate) fn extents(map: &Map, pieces: &[Piece]) -> Vec<Extent> {
    let within = |piece: &Piece| {
        let (piece, extents) = (*piece, map.extents());
        let first = extents.partition_point(|extent| extent.end() <= piece.upper);
        let reached = extents.get(first..).unwrap_or(&[]).iter();
        reached.map_while(move |extent| piece.extent(extent))
    };
    let mut all: Vec<Extent> = pieces.iter().flat_map(within).collect();
    all.sort_by_key(|extent| extent.sector);
    let mut at = 0;
    let mut disjoint = Vec::with_capacity(all.len());
    for extent in all {
        let free = extent.sector.max(at);
        if free < extent.end() {
            at = extent.end();
            crate::map::append(&mut disjoint, extent.cut(free, at));
        }
    }
    disjoint
}
