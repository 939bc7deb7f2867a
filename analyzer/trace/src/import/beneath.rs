// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the filesystems of a text lie on its disks, as remaps and bios show it.

use std::collections::{BTreeMap, HashSet};

use foldhash::fast::RandomState;
use mostrace_bundle::manifest::Mapping;
use mostrace_bundle::tracepoints::Volume;

use super::seen::{Remap, Seen};

/// Sizes of a block that a filesystem may have.
const SIZES: [u64; 5] = [1 << 10, 1 << 11, 1 << 12, 1 << 14, 1 << 16];
/// The most blocks that are remembered of a filesystem.
const RECENT: usize = 1 << 12;
/// The most devices, and the most of them on top of each other.
const MANY: usize = 1 << 10;
const DEEP: usize = 8;

#[derive(Default)]
pub(super) struct Beneath {
    /// For each device that below it, and by how many sectors all its bios are shifted; None if that differs.
    remaps: BTreeMap<u32, (u32, Option<u64>)>,
    filesystems: BTreeMap<u32, Filesystem>,
}

#[derive(Default)]
struct Filesystem {
    told: u64,
    /// Blocks that events placed of late.
    recent: HashSet<u64, RandomState>,
    /// For each size the bios that begin at such a block.
    hits: [u64; SIZES.len()],
}

impl Beneath {
    pub fn remap(&mut self, remap: Remap) {
        let shift = remap.to_sector.checked_sub(remap.from_sector);
        if self.remaps.len() < MANY {
            let known = self.remaps.entry(remap.from).or_insert((remap.to, shift));
            if *known != (remap.to, shift) {
                known.1 = None;
            }
        }
    }

    /// Takes the first block that an event places, if it does.
    pub fn placed(&mut self, dev: u32, block: Option<u64>) {
        if self.filesystems.len() >= MANY {
            return;
        }
        let filesystem = self.filesystems.entry(dev).or_default();
        filesystem.told = filesystem.told.saturating_add(1);
        if filesystem.recent.len() >= RECENT {
            filesystem.recent.clear();
        }
        filesystem.recent.extend(block);
    }

    /// Takes a bio: its first sector tells the size of the filesystem's blocks.
    pub fn queued(&mut self, seen: &Seen<'_>) {
        let devs: Vec<u32> = self.filesystems.keys().copied().collect();
        for dev in devs {
            let Some((end, shift)) = self.below(dev) else {
                continue;
            };
            let sector = seen.sector.checked_sub(shift);
            let (Some(sector), Some(filesystem)) = (sector, self.filesystems.get_mut(&dev)) else {
                continue;
            };
            if end != seen.device {
                continue;
            }
            for (size, hits) in SIZES.iter().zip(&mut filesystem.hits) {
                let sectors = size / 512;
                let block = sector.checked_div(sectors);
                if sector.is_multiple_of(sectors)
                    && block.is_some_and(|block| filesystem.recent.contains(&block))
                {
                    *hits = hits.saturating_add(1);
                }
            }
        }
    }

    /// Returns the device whose bios have the sectors of the disk, and where the filesystem begins in these.
    fn below(&self, dev: u32) -> Option<(u32, u64)> {
        let (mut at, mut shifted) = (dev, 0_u64);
        for _ in 0..DEEP {
            let Some((to, shift)) = self.remaps.get(&at) else {
                return Some((at, shifted));
            };
            shifted = shifted.checked_add((*shift)?)?;
            if *to == at {
                return Some((at, shifted));
            }
            at = *to;
        }
        None
    }

    /// Returns the filesystem of which most is told, of those that lie on such devices, and true if others are in the text.
    pub fn volume(&self, is_target: impl Fn(u32) -> bool) -> Option<(Volume, bool)> {
        let on_it = self.filesystems.iter().filter_map(|(dev, filesystem)| {
            let (end, shift) = self.below(*dev).filter(|(end, _)| is_target(*end))?;
            Some((filesystem.told, *dev, end, shift, filesystem.hits))
        });
        let (_, dev, end, shift, hits) = on_it.max()?;
        let best = SIZES.iter().zip(hits).max_by_key(|(_, hits)| *hits);
        let (size, _) = best.filter(|(_, hits)| *hits > 0)?;
        let volume = match dev == end {
            true => Volume::on(dev, shift..u64::MAX, *size),
            false => {
                let whole = Mapping {
                    sectors: u64::MAX,
                    lower_start_sector: shift,
                    ..Mapping::default()
                };
                Volume::above("", dev, &[whole], *size)
            }
        };
        Some((volume, self.filesystems.len() > 1))
    }

    /// Returns true if an event told of a filesystem.
    pub fn is_told(&self) -> bool {
        !self.filesystems.is_empty()
    }
}
