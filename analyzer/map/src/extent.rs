// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of sectors with one owner, and lists of them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::class::Kind;

/// Consecutive sectors with one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Extent {
    /// First sector, 512 bytes each, counted from the start of the whole disk.
    pub sector: u64,
    /// Length in sectors, at least 1.
    pub sectors: u64,
    /// The contents of the sectors.
    pub kind: Kind,
    /// The owning inode; 0 if there is none (layout metadata, free space).
    pub inode: u64,
    /// Byte offset of the extent in the owning file, for kinds that are a file's contents.
    pub file_offset: Option<u64>,
}

impl Extent {
    /// Makes an extent of which only the kind is known.
    pub(crate) fn ownerless(sector: u64, end: u64, kind: Kind) -> Extent {
        Extent {
            sector,
            sectors: end.saturating_sub(sector),
            kind,
            inode: 0,
            file_offset: None,
        }
    }

    /// Returns the sector behind the last one.
    pub fn end(&self) -> u64 {
        self.sector.saturating_add(self.sectors)
    }

    /// Returns the part inside `from..to`, with `file_offset` adjusted. The two ranges must overlap.
    pub(crate) fn cut(&self, from: u64, to: u64) -> Extent {
        let sector = self.sector.max(from);
        let skipped = sector.saturating_sub(self.sector).saturating_mul(512);
        Extent {
            sector,
            sectors: self.end().min(to).saturating_sub(sector),
            file_offset: self
                .file_offset
                .map(|offset| offset.saturating_add(skipped)),
            ..*self
        }
    }

    /// Returns true if `next` continues this extent, on the disk and in the file.
    fn continues_into(&self, next: &Extent) -> bool {
        let offset = self
            .file_offset
            .map(|o| o.saturating_add(self.sectors.saturating_mul(512)));
        self.end() == next.sector
            && (self.kind, self.inode) == (next.kind, next.inode)
            && offset == next.file_offset
    }
}

/// Cuts the extents so that none overlap within `start..end`: of several that hold a sector, the first listed keeps it.
/// Gaps become `free`.
pub(crate) fn disjoint(start: u64, end: u64, extents: Vec<Extent>) -> Vec<Extent> {
    let inside = |(_, e): &(usize, Extent)| e.sector.max(start) < e.end().min(end);
    let mut listed: Vec<(usize, Extent)> = extents.into_iter().enumerate().collect();
    listed.retain(inside);
    listed.sort_by_key(|(_, extent)| extent.sector);

    let mut coming = listed.into_iter().peekable();
    // The extents that begin at or before `at`, the first listed on top.
    let mut begun: BinaryHeap<Reverse<(usize, Extent)>> = BinaryHeap::new();
    let mut cut = Vec::new();
    let mut at = start;
    while at < end {
        while let Some(extent) = coming.next_if(|(_, extent)| extent.sector <= at) {
            begun.push(Reverse(extent));
        }
        while begun.peek().is_some_and(|Reverse((_, e))| e.end() <= at) {
            begun.pop();
        }
        let next = coming.peek().map_or(end, |(_, e)| e.sector.min(end));
        let piece = match begun.peek() {
            Some(Reverse((_, extent))) => extent.cut(at, next),
            None => Extent::ownerless(at, next, Kind::Free),
        };
        at = piece.end();
        append(&mut cut, piece);
    }
    cut.shrink_to_fit();
    cut
}

/// Appends a piece to a list of extents; merges it with the last one if it continues that.
pub(crate) fn append(extents: &mut Vec<Extent>, piece: Extent) {
    match extents.last_mut() {
        Some(last) if last.continues_into(&piece) => {
            last.sectors = last.sectors.saturating_add(piece.sectors);
        }
        _ => extents.push(piece),
    }
}
