// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sectors that belong to the filesystem itself.

use super::boot_record::{BootRecord, FatBits};
use super::claims::Claims;
use super::cluster::FatSector;
use crate::class::Kind;
use crate::fs::image::Image;
use crate::fs::le::u32_at;

/// `MSDOS_ROOT_INO`: the inode number of the root directory, which has no directory entry.
pub const MSDOS_ROOT_INO: u64 = 1;

/// Claims the reserved sectors, the FATs, the root directory of FAT12 and FAT16, and the sectors at the end that are
/// less than a cluster.
pub fn claim(image: &Image, boot: &BootRecord, claims: &mut Claims) {
    for sector in fsinfos(image, boot) {
        claims.sectors(sector..sector.plus(1), Kind::Fsinfo, 0, None);
    }
    claims.sectors(FatSector(0)..boot.fat_start, Kind::BootRecord, 0, None);
    claims.sectors(boot.fat_start..boot.dir_start, Kind::Fat, 0, None);
    let root = boot.dir_start..boot.data_start;
    match boot.fat_bits {
        // On FAT32, Linux skips the sectors for the root entries that the boot record counts, and never reads them.
        FatBits::ThirtyTwo => claims.sectors(root, Kind::Unmapped, 0, None),
        _ => claims.sectors(root, Kind::Directory, MSDOS_ROOT_INO, Some(0)),
    }
    let end = boot.sector_of(boot.max_cluster);
    claims.sectors(end..boot.end(), Kind::Unmapped, 0, None);
}

/// Returns the sectors of the free-space hints and of their copy, which lies behind the boot record's backup, if they
/// are there.
fn fsinfos(image: &Image, boot: &BootRecord) -> Vec<FatSector> {
    let Some(first) = boot.fsinfo_sector else {
        return Vec::new();
    };
    let copy = boot.backup.map(|backup| backup.plus(first.0));
    [Some(first), copy]
        .into_iter()
        .flatten()
        .filter(|&sector| sector < boot.fat_start)
        .filter(|&sector| is_fsinfo(image, boot.byte_of(sector)))
        .collect()
}

/// Returns true if the sector is an FSInfo sector: `IS_FSINFO`.
fn is_fsinfo(image: &Image, at: u64) -> bool {
    let Ok(buf) = image.read(at, 512, "FSInfo") else {
        return false;
    };
    u32_at(&buf, 0) == Some(0x4161_5252) && u32_at(&buf, 484) == Some(0x6141_7272)
}
