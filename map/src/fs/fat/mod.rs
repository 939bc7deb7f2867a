// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map of a FAT12, FAT16 or FAT32 filesystem, with the long names of vfat.
//!
//! ```text
//! boot record ──→ reserved sectors, FATs, root of FAT12 and FAT16 ─┐
//!     └─→ FAT, compared to its copies                             ├─→ claims ─→ Map
//! root directory ─→ entries ──→ names, and chains of clusters ─────┤
//!       ↑______________│                                           │
//! FAT ──→ bad clusters, clusters in use, ownerless─────────────────┘
//! ```
//! FAT has no inodes. The number that a file goes by is the kernel's `i_pos`, the place of its
//! directory entry: the sector of the filesystem, times the entries in a sector, plus which one
//! it is (`fat_make_i_pos` of fs/fat/dir.c). The root directory is 1. There are no generations.
//!
//! Names are UTF-8: long ones converted from UTF-16, short ones from code page 437, as Linux does
//! by default; which page it is, the volume does not say. A half surrogate comes as `:` and four
//! hexadecimal figures.
//!
//! Only the reserved sectors, the FATs and the directories are read, always in the same order.

use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::notices::Notices;
use crate::fs::progress::{Part, Watcher};
use crate::fs::volume::Volume;
use crate::map::Map;

mod boot_record;
mod chain;
mod claims;
mod cluster;
mod dirent;
mod geometry;
mod layout;
mod long_name;
mod lost;
mod short_name;
mod table;
mod walk;

use boot_record::BootRecord;
use claims::Claims;
use table::Table;
use walk::Walk;

/// Builds the map of a filesystem that begins at `start_sector` (512 bytes) of its disk; all
/// sectors of the map count from there. What could not be resolved stands in [`Map::notices`],
/// and its clusters are `unmapped` as far as the FAT says that they are in use. A deleted file
/// whose entry is still there is an inode too, and owns, as `free`, its first cluster, unless
/// that has been given away.
///
/// # Errors
/// Neither the boot record nor its backup can be of a FAT, or the FAT cannot be read.
pub fn build(image: &Image, start_sector: u64) -> Result<Map> {
    build_with(image, start_sector, &|_| {})
}

/// [`build`], which tells `watcher` how far it is.
pub(super) fn build_with(image: &Image, start_sector: u64, watcher: &Watcher) -> Result<Map> {
    let mut notices = Notices::default();
    let boot = &BootRecord::read(image, &mut notices)?;
    let units = boot.total_sectors.into();
    let volume = Volume::new(image, start_sector, units, boot.sector_size)?;
    if image.bytes() < boot.byte_of(boot.end()) {
        let (bytes, sectors) = (image.bytes(), volume.sectors());
        notices.push(format!(
            "the image ends at byte {bytes}, before its {sectors} sectors"
        ));
    }
    let table = &Table::read(image, boot, &mut notices)?;
    let mut claims = Claims::new(boot, volume);
    layout::claim(image, boot, &mut claims);
    let part = Part::new(watcher, "clusters in use", table.in_use());
    let walked = Walk::new(image, boot, table, claims, part).all(&mut notices);
    let mut lines = notices.into_lines();
    lines.extend(walked.notices.into_lines());
    let map = volume.map(walked.extents, walked.inodes);
    Ok(map.with_notices(lines))
}
