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
//! FAT has no inodes. A file's number is the kernel's `i_pos`, the position of its directory entry: the filesystem's
//! sector times the number of entries in a sector, plus the index of the entry (`fat_make_i_pos` in fs/fat/dir.c). The
//! root directory has the number 1. There are no generations.
//!
//! Names are UTF-8. Long names are converted from UTF-16, short ones from code page 437, which is Linux's default; the
//! volume does not record its code page. A half surrogate becomes `:` and four hexadecimal digits.
//!
//! Only the reserved sectors, the FATs and the directories are read, always in the same order.

use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::notices::Notices;
use crate::fs::progress::{PartProgress, Watcher};
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

/// Builds the map of a filesystem. `start_sector` is its first sector on its disk, 512 bytes each; all sectors of the
/// map count from the start of the disk. What could not be resolved is listed in [`Map::notices`], and those of its
/// clusters that the FAT marks as in use are `unmapped`. A deleted file whose directory entry still exists is an inode
/// too; it owns its first cluster, as `free`, unless another file has it.
///
/// # Errors
/// Returns an error if neither the boot record nor its backup can belong to a FAT, or if the FAT cannot be read.
pub fn build(image: &Image, start_sector: u64) -> Result<Map> {
    build_with(image, start_sector, &|_| {})
}

/// Builds the map as [`build`] does, and reports progress to `watcher`.
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
    let part = PartProgress::new(watcher, "clusters in use", table.in_use());
    let walked = Walk::new(image, boot, table, claims, part).all(&mut notices);
    let mut lines = notices.into_lines();
    lines.extend(walked.notices.into_lines());
    let map = volume.map(walked.extents, walked.inodes);
    Ok(map.with_notices(lines))
}
