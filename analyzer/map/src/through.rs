// SPDX-License-Identifier: MIT OR Apache-2.0
//! Translates the map of a filesystem on a mapped device (dm), or on several devices, to sectors of one disk.

use crate::extent::{Extent, append};

/// The sector from which on those count that lie on other disks: no disk has so many.
pub const ELSEWHERE: u64 = 1 << 62;

/// A run of sectors of a mapped device or of a filesystem on several devices, and its place on the disk below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First sector on the mapped device.
    pub upper: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// First sector on the disk below; from [`ELSEWHERE`] on if it lies on another disk.
    pub lower: u64,
}

impl Piece {
    /// Returns the sector behind its last one, on the mapped device.
    fn end(&self) -> u64 {
        self.upper.saturating_add(self.sectors)
    }

    /// Translates a sector of the mapped device to the disk.
    fn down(&self, sector: u64) -> u64 {
        let skipped = sector.saturating_sub(self.upper);
        self.lower.saturating_add(skipped)
    }

    /// Returns the part of an extent that lies in this piece, translated to the disk.
    fn extent(&self, extent: &Extent) -> Option<Extent> {
        let meets = extent.sector < self.end() && self.upper < extent.end();
        let cut = meets.then(|| extent.cut(self.upper, self.end()))?;
        Some(Extent {
            sector: self.down(cut.sector),
            ..cut
        })
    }
}

/// Translates a sector of the mapped device to the disk; None if it lies on another disk.
pub(crate) fn down(pieces: &[Piece], sector: u64) -> Option<u64> {
    let piece = pieces
        .iter()
        .find(|piece| (piece.upper..piece.end()).contains(&sector))?;
    Some(piece.down(sector))
}

/// Translates the extents of a mapped device to the disk, sorted and disjoint. Extents outside all pieces are dropped.
/// If two pieces lie at the same place of the disk, which the kernel never sets up, the one that begins first keeps it.
pub(crate) fn extents(extents: &[Extent], pieces: &[Piece]) -> Vec<Extent> {
    let within = |piece: &Piece| {
        let piece = *piece;
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
            append(&mut disjoint, extent.cut(free, at));
        }
    }
    disjoint
}
