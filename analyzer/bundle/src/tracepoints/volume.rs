// SPDX-License-Identifier: MIT OR Apache-2.0
//! The place of the files' filesystem on the traced disk.

use std::ops::Range;

use crate::manifest::Mapping;

/// The filesystem on the traced device, or on a mapped one (dm) that lies on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// The number of the device that the filesystem is on, MAJ << 20 | MIN.
    pub dev: u32,
    /// Sectors of a block, at least 1.
    pub(super) sectors_of_block: u64,
    /// True if that device is a mapped one.
    pub(super) is_mapped: bool,
    /// The runs, which are disjoint.
    runs: Vec<Run>,
}

/// Sectors that are consecutive on both devices.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    disk: Range<u64>,
    /// First sector on the filesystem's device.
    start: u64,
}

/// Consecutive sectors of the disk that belong to the filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub disk: Range<u64>,
    /// First sector on the filesystem's device.
    pub start: u64,
}

impl Piece {
    /// Returns the sectors on the filesystem's device.
    pub fn sectors(&self) -> Range<u64> {
        let count = self.disk.end.saturating_sub(self.disk.start);
        self.start..self.start.saturating_add(count)
    }
}

/// Returns the sectors of a block.
fn sectors(block_size: u64) -> u64 {
    (block_size / 512).max(1)
}

impl Volume {
    /// Describes a filesystem on the device `dev`, which has these sectors of the traced disk. Its blocks have `block_size` bytes.
    pub fn on(dev: u32, disk: Range<u64>, block_size: u64) -> Volume {
        Volume {
            dev,
            sectors_of_block: sectors(block_size),
            is_mapped: false,
            runs: vec![Run { disk, start: 0 }],
        }
    }

    /// Returns the size of a block in bytes.
    pub fn block_size(&self) -> u64 {
        self.sectors_of_block.saturating_mul(512)
    }

    /// Describes a filesystem on the mapped device `dev`, as far as that device lies on the disk `disk` (sysfs' `major:minor`).
    pub fn above(disk: &str, dev: u32, mapping: &[Mapping], block_size: u64) -> Volume {
        Volume {
            is_mapped: true,
            ..Volume::among(disk, dev, mapping, block_size)
        }
    }

    /// Describes a filesystem that begins on the device `dev` and lies on several, as far as it is on the disk `disk`.
    pub fn among(disk: &str, dev: u32, mapping: &[Mapping], block_size: u64) -> Volume {
        let here = mapping.iter().filter(|run| run.lower_disk_dev == disk);
        let runs = here.map(|run| Run {
            disk: run.lower_start_sector..run.lower_start_sector.saturating_add(run.sectors),
            start: run.start_sector,
        });
        Volume {
            dev,
            sectors_of_block: sectors(block_size),
            is_mapped: false,
            runs: runs.collect(),
        }
    }

    /// Returns the blocks that a piece touches.
    pub(super) fn blocks(&self, piece: &Piece) -> Range<u64> {
        let sectors = piece.sectors();
        let size = self.sectors_of_block.max(1);
        sectors.start.checked_div(size).unwrap_or(0)..sectors.end.div_ceil(size)
    }

    /// Returns the part of a run of blocks that lies within the piece: its sectors on the disk, and its offset in the run in bytes.
    pub(super) fn part(&self, piece: &Piece, blocks: &Range<u64>) -> (Range<u64>, u64) {
        let sectors = piece.sectors();
        let sector = |block: u64| block.saturating_mul(self.sectors_of_block);
        let run = sector(blocks.start)..sector(blocks.end);
        let first = run.start.max(sectors.start);
        let end = run.end.min(sectors.end).max(first);
        let before = first.saturating_sub(sectors.start);
        let on_disk = piece.disk.start.saturating_add(before);
        let count = end.saturating_sub(first);
        let behind = first.saturating_sub(run.start).saturating_mul(512);
        (on_disk..on_disk.saturating_add(count), behind)
    }

    /// Returns the pieces of these sectors of the disk that belong to the filesystem.
    pub(super) fn pieces(&self, sectors: &Range<u64>) -> Vec<Piece> {
        let overlaps = self.runs.iter().filter_map(|run| {
            let first = run.disk.start.max(sectors.start);
            let end = run.disk.end.min(sectors.end);
            (first < end).then(|| Piece {
                disk: first..end,
                start: run
                    .start
                    .saturating_add(first.saturating_sub(run.disk.start)),
            })
        });
        overlaps.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Describes 100 sectors from 2048 on, the second half first; 8 sectors lie elsewhere.
    fn mapped() -> Volume {
        let run = |start_sector, sectors, disk: &str, lower_start_sector| Mapping {
            start_sector,
            sectors,
            lower_disk_dev: disk.into(),
            lower_start_sector,
            ..Mapping::default()
        };
        let mapping = [
            run(0, 50, "7:0", 2098),
            run(50, 50, "7:0", 2048),
            run(100, 8, "7:1", 0),
        ];
        Volume::above("7:0", 0xfd_00000, &mapping, 4096)
    }

    #[test]
    fn sectors_of_the_disk_are_followed_up() {
        let volume = mapped();
        let piece = |disk: Range<u64>, start| Piece { disk, start };
        assert_eq!(volume.pieces(&(2050..2060)), [piece(2050..2060, 52)]);
        let mut across = volume.pieces(&(2090..2110));
        across.sort_by_key(|piece| piece.disk.start);
        assert_eq!(across, [piece(2090..2098, 92), piece(2098..2110, 0)]);
        assert_eq!(volume.pieces(&(0..2048)), []);
        assert_eq!(volume.pieces(&(2148..9999)), []);
    }

    #[test]
    fn a_run_of_blocks_is_cut_to_the_piece() {
        let volume = mapped();
        // Sectors 52..62 are blocks 6 and 7; the first half of block 6 is missing.
        let piece = &volume.pieces(&(2050..2060))[0];
        assert_eq!(volume.blocks(piece), 6..8);
        assert_eq!(volume.part(piece, &(6..8)), (2050..2060, 4 * 512));
        assert_eq!(volume.part(piece, &(7..8)), (2054..2060, 0));
    }
}
